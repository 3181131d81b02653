// SPDX-License-Identifier: Apache-2.0
// deft/session/wire/serialize.hpp: plans, devices and options as bytes.
#pragma once
#include <chrono>
#include <deft/device/kind.hpp>
#include <deft/plan/cut.hpp>
#include <deft/session/engine.hpp>
#include <deft/transport/archive.hpp>

namespace deft {

template <class Archive>
void serialize(Archive& ar, trace_event& e, unsigned) {
  ar& ext::named("node", e.node) & ext::named("op", e.op) & ext::named("place", e.place) &
      ext::named("device", e.device) & ext::named("lane", e.lane) & ext::named("begin", e.begin) &
      ext::named("end", e.end);
}

namespace ext {

template <class Archive>
void serialize(Archive& ar, std::chrono::nanoseconds& d, unsigned) {
  std::int64_t count = d.count();
  ar& named("nanoseconds", count);
  if constexpr (Archive::is_loading::value) d = std::chrono::nanoseconds(count);
}

namespace plan {
template <class Archive>
void serialize(Archive& ar, part& p, unsigned) {
  std::string task;
  if constexpr (Archive::is_saving::value) task = to_string(*p.task);
  ar& named("task", task);
  if constexpr (Archive::is_loading::value) {
    p.task = deft::detail::device_of_wire(task);
    if (!p.task) fail(errc::data_loss, "a part does not name its task");
  }
  ar& named("graph", p.graph) & named("fetches", p.fetches) & named("numbers", p.fetch_numbers) &
      named("stream", p.stream);
}
template <class Archive>
void serialize(Archive& ar, pass_size& p, unsigned) {
  ar& named("pass", p.pass) & named("nodes", p.nodes);
}
template <class Archive>
void serialize(Archive& ar, unfused_edge& k, unsigned) {
  deft::detail::serialize_name(ar, k.node);
  deft::detail::serialize_name(ar, k.user);
  ar& named("reason", k.reason);
}
}  // namespace plan

struct kernel_entry_on_wire {
  std::string op;
  std::uint32_t types = 0;
};

template <class Archive>
void serialize(Archive& ar, kernel_entry_on_wire& k, unsigned) {
  ar& named("op", k.op) & named("types", k.types);
}

}  // namespace ext

template <class Archive>
void serialize(Archive& ar, device_info& d, unsigned) {
  std::string name;
  std::vector<ext::kernel_entry_on_wire> kernels;
  if constexpr (Archive::is_saving::value) {
    name = to_string(*d.name);
    if (d.kernels)
      for (const auto& [op, types] : d.kernels->entries()) kernels.push_back({op, types.bits});
  }
  ar& ext::named("name", name) & ext::named("description", d.description) &
      ext::named("memory", d.memory) & ext::named("bus_id", d.bus_id) &
      ext::named("kernels", kernels);
  if constexpr (Archive::is_loading::value) {
    d.name = detail::device_of_wire(name);
    if (!d.name) ext::fail(errc::data_loss, "a device does not have a name");
    ext::set_kind(d);
    ext::kernel_set known;
    for (const auto& k : kernels) {
      ext::dtype_set types;
      types.bits = k.types;
      known.add(k.op, types);
    }
    d.kernels = std::make_shared<const ext::kernel_set>(std::move(known));
  }
}

/// The options that a master needs. The rest, credentials included, stay with the client.
template <class Archive>
void serialize(Archive& ar, session_options& o, unsigned) {
  std::uint64_t stream = o.stream.value_or(0);
  ar& ext::named("log_device_placement", o.log_device_placement) &
      ext::named("allow_soft_placement", o.allow_soft_placement) & ext::named("fold", o.fold) &
      ext::named("fuse", o.fuse) & ext::named("timeout", o.timeout) &
      ext::named("connect_timeout", o.connect_timeout) & ext::named("stream", stream) &
      ext::named("first_step", o.first_step);
  if constexpr (Archive::is_loading::value) o.stream = stream;
}

}  // namespace deft
