// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/task_runtime.ipp: makes a task's devices.
#pragma once
#include <deft/kernels/cpu/device.hpp>
#include <deft/kernels/gpu/devices.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <deft/transport/handshake.hpp>
#include <mutex>

namespace deft::ext {
namespace {

struct device_makers {
  std::mutex guard;
  std::vector<device_maker> all;
};
device_makers& other_devices() {
  static auto& m = *new device_makers;
  return m;
}

}  // namespace

void register_device_maker(device_maker make) {
  auto& m = other_devices();
  std::lock_guard lock(m.guard);
  m.all.push_back(make);
}

task_runtime::task_runtime(const device_name& name, int cpu_devices, const gpu::options& gpus,
                           file_roots files)
    : name_(name), store_(std::move(files)), incarnation_(random_incarnation()) {
  if (cpu_devices < 1 || cpu_devices > 1024)
    fail(errc::invalid_argument, "cpu_devices must be 1 to 1024, not ", cpu_devices);
  for (int i = 0; i < cpu_devices; ++i) devices_.push_back(make_cpu_device(name, i));
  for (auto& d : gpu::make_devices(name, gpus)) devices_.push_back(std::move(d));
  auto& m = other_devices();
  std::lock_guard lock(m.guard);
  for (auto make : m.all)
    for (auto& d : make(name)) devices_.push_back(std::move(d));
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
