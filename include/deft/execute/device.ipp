// SPDX-License-Identifier: Apache-2.0
// deft/execute/device.ipp: processors as devices, and copies between devices.
#pragma once
#include <unistd.h>

#include <deft/execute/device.hpp>
#include <deft/op/catalog.hpp>
#include <fstream>
#include <thread>

namespace deft {

std::span<const std::string_view> executor_ops() {
  static constexpr std::string_view names[] = {
      op::constant::name,      op::feed::name,   op::placeholder::name, op::variable::name,
      op::read_variable::name, op::assign::name, op::identity::name,    op::stop_gradient::name,
      op::reshape::name,       op::group::name,  op::no_op::name,       op::send::name,
      op::recv::name,          op::copy::name,
  };
  return names;
}

namespace {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) {
      auto colon = line.find(": ");
      if (colon != line.npos) return line.substr(colon + 2);
    }
  return "CPU";
}

class cpu_device final : public device_runtime {
 public:
  explicit cpu_device(device_info info) : device_runtime(std::move(info)) {}
  memory& space() override { return host_memory(); }
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  kernel_ptr make_kernel(const node_def& n, std::span<const tensor_type> in) override {
    auto factory = find_cpu_kernel(n.op->name);
    return factory ? factory(n, in) : nullptr;
  }
};

}  // namespace

std::unique_ptr<device_runtime> make_cpu_device(const device_name& task, int number) {
  static const auto& kernels = *new auto([] {
    auto names = std::make_shared<std::set<std::string>>();
    for (auto n : cpu_kernel_names()) names->emplace(n);
    for (auto n : executor_ops()) names->emplace(n);
    return std::shared_ptr<const std::set<std::string>>(std::move(names));
  }());
  device_info info;
  device_name name = task;
  name.type = "cpu";
  name.index = number;
  info.name = intern(name);
  info.description = str(processor_name(), ", ", std::thread::hardware_concurrency(), " threads");
  info.memory = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  info.kernels = kernels;
  return std::make_unique<cpu_device>(std::move(info));
}

any_array copy_to_device(const any_array& value, device_runtime& from, device_runtime& to) {
  if (&from == &to || (from.space().on_host() && to.space().on_host())) return value;
  std::size_t bytes = value.bytes();
  buffer moved(to.space().allocate(std::max<std::size_t>(bytes, 1)));
  if (from.space().on_host()) {
    to.copy_in(moved.data(), value.raw(), bytes);
  } else if (to.space().on_host()) {
    from.copy_out(moved.data(), value.raw(), bytes);
  } else if (to.wait(from.record()); !to.copy_between(moved.data(), from, value.raw(), bytes)) {
    buffer host = buffer::host(bytes);
    from.copy_out(host.data(), value.raw(), bytes);
    to.copy_in(moved.data(), host.data(), bytes);
  }
  return any_array(value.type(), value.shape(), std::move(moved));
}

}  // namespace deft
