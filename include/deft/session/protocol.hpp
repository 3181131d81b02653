// SPDX-License-Identifier: Apache-2.0
// deft/session/protocol.hpp: the messages between clients, masters and workers.
#pragma once
#include <deft/plan/cut.hpp>
#include <deft/session/engine.hpp>
#include <deft/transport/archive.hpp>
#include <deft/transport/message.hpp>
#include <new>

namespace deft {

/// Kinds of session/. What needs no answer gets none: only calls have an id.
enum class request : std::uint16_t {
  // Master to worker.
  register_part = 16,  ///< one-way; session, step = handle; meta: part, incarnations of its tasks
  run_part = 17,       ///< call; session, step; meta: handle; tensors: feeds. Answer: fetches
  tensor = 18,  ///< one-way, worker to worker (to the master's task on the connection by which it
                ///< runs the part); session, step; flags: key; one tensor
  cancel_step = 19,   ///< one-way; session, step
  drop_part = 20,     ///< one-way; session, step = handle
  drop_session = 21,  ///< one-way; session
  devices = 22,       ///< call. Answer: meta: devices of the task
  reset = 23,         ///< call; meta: container
  // Client to master.
  open_session = 32,  ///< call; meta: options. Answer: session
  make_plan = 33,  ///< call; session; step = nanoseconds that waiting for tasks may take, 0: any;
                   ///< meta: flat graph. Answer: step = plan
  run_plan = 34,   ///< call; session; step = plan; meta: timeout; tensors: feeds
  drop_plan = 35,  ///< one-way; session; step = plan
  cluster_devices = 36,  ///< call; session. Answer: meta: devices of all tasks
  reset_cluster = 37,    ///< call; session; meta: container
  close_session = 38,    ///< one-way; session
  cancel_run = 39,       ///< one-way; session, step = id of the run_plan
  describe_plan = 40,    ///< as make_plan. Answer: meta: placed, passes, apart
  // Between tasks of a training job.
  wait_signal = 48,  ///< call; meta: name. Answered once the task has it
  set_signal = 49,   ///< call; meta: name
  done = 50,         ///< call; meta: name of the task that needs this one no more
};

/// A flag of run_plan: a cancel_run may follow.
inline constexpr std::uint32_t can_be_cancelled = 1;

/// What `f` throws, as an error that can be sent; null if it returns. What a message asks for must
/// not end the process, whatever it is.
template <class F>
std::shared_ptr<const error> caught(F&& f) {
  try {
    f();
    return nullptr;
  } catch (const error& e) {
    return std::make_shared<const error>(e);
  } catch (const std::bad_alloc&) {
    return std::make_shared<const error>(errc::resource_exhausted, "out of memory");
  } catch (const std::exception& e) {
    return std::make_shared<const error>(errc::internal, e.what());
  }
}

/// A feed as a message carries it. `borrows` is set if the elements are the caller's: then nothing
/// may be queued any more when the run returns.
inline any_array fed_array(const feed_ref& f, bool& borrows) {
  constexpr std::size_t small = 64 << 10;
  any_array a = f.array();
  if (!a.storage().is_borrowed()) return a;
  if (a.bytes() <= small) return a.clone();
  borrows = true;
  return a;
}

/// Throws internal unless the value with which `who` answers has the type that was declared.
template <class Who>
void check_answer(const any_array& v, const tensor_type& declared, const Who& who) {
  if (v.type() != declared.type || !fits(declared.shape, v.shape()))
    fail(errc::internal, who, " answered with ", v.type(), v.shape(), ", not ", declared);
}

inline message make_message(request r, std::uint64_t session = 0, std::uint64_t step = 0) {
  message m(static_cast<message_kind>(r));
  m.session = session;
  m.step = step;
  return m;
}

namespace plan {
template <class Archive>
void serialize(Archive& ar, part& p, unsigned) {
  std::string task;
  if constexpr (Archive::is_saving::value) task = to_string(*p.task);
  ar& named("task", task);
  if constexpr (Archive::is_loading::value) p.task = deft::detail::device_of_wire(task);
  ar& named("graph", p.graph) & named("fetches", p.fetches) & named("numbers", p.fetch_numbers) &
      named("stream", p.stream);
}
template <class Archive>
void serialize(Archive& ar, pass_size& p, unsigned) {
  ar& named("pass", p.pass) & named("nodes", p.nodes);
}
template <class Archive>
void serialize(Archive& ar, kept_apart& k, unsigned) {
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

template <class Archive>
void serialize(Archive& ar, device_info& d, unsigned) {
  std::string name;
  std::vector<kernel_entry_on_wire> kernels;
  if constexpr (Archive::is_saving::value) {
    name = to_string(*d.name);
    for (const auto& [op, types] : d.kernels->entries()) kernels.push_back({op, types.bits});
  }
  ar& named("name", name) & named("description", d.description) & named("memory", d.memory) &
      named("bus_id", d.bus_id) & named("kernels", kernels);
  if constexpr (Archive::is_loading::value) {
    d.name = detail::device_of_wire(name);
    if (!d.name) fail(errc::data_loss, "a device without a name");
    kernel_set known;
    for (const auto& k : kernels) {
      dtype_set types;
      types.bits = k.types;
      known.add(k.op, types);
    }
    d.kernels = std::make_shared<const kernel_set>(std::move(known));
  }
}

/// What of the options a master needs; the rest, and the secret, stay with the client.
template <class Archive>
void serialize(Archive& ar, session_options& o, unsigned) {
  std::int64_t timeout = o.timeout.count(), connect_timeout = o.connect_timeout.count();
  std::uint64_t stream = o.stream.value_or(0);
  ar& named("log_device_placement", o.log_device_placement) &
      named("allow_soft_placement", o.allow_soft_placement) & named("fold", o.fold) &
      named("fuse", o.fuse) & named("timeout", timeout) &
      named("connect_timeout", connect_timeout) & named("stream", stream) &
      named("first_step", o.first_step);
  if constexpr (Archive::is_loading::value) {
    o.stream = stream;
    o.timeout = std::chrono::nanoseconds(timeout);
    o.connect_timeout = std::chrono::nanoseconds(connect_timeout);
  }
}

}  // namespace deft
