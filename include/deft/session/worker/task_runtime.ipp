// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/task_runtime.ipp: makes a task's devices.
#pragma once
#include <deft/core/log.hpp>
#include <deft/kernels/cpu/device.hpp>
#include <deft/kernels/gpu/devices.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <deft/transport/handshake.hpp>

namespace deft::ext {
namespace {

/// deft's own kinds, which a program links as it links this file. Before main, or by the first
/// task, which a session of static storage duration may make earlier.
bool register_own_kinds() {
  static const registered_device_kind own[] = {cpu_kind, gpu::simulated::kind, gpu::cuda::kind};
  return std::size(own) > 0;
}
[[maybe_unused]] const bool own_kinds = register_own_kinds();

}  // namespace

task_runtime::task_runtime(const device_name& name, const device_settings& settings,
                           file_roots files)
    : name_(name), store_(std::move(files)), incarnation_(random_incarnation()) {
  register_own_kinds();
  const device_settings all = complete(settings);
  for (const device_kind* kind : device_kinds())
    for (auto& d : kind->make(name, all)) {
      if (!kind->host) logging::info("uses ", to_string(d->info()));
      devices_.push_back(std::move(d));
    }
}

std::vector<device_info> task_runtime::devices() const {
  std::vector<device_info> list;
  for (const auto& d : devices_) list.push_back(d->info());
  return list;
}

device_name local_task_name() {
  static const device_name& name =
      *new device_name(parse_device("/job:localhost/replica:0/task:0"));
  return name;
}

}  // namespace deft::ext
