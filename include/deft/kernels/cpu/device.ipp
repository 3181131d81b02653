// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/device.ipp: the processor's device, and its joined table of kernels.
#pragma once
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <deft/core/thread.hpp>
#include <deft/kernels/constant_folding.hpp>
#include <deft/kernels/cpu/device.hpp>
#include <deft/kernels/cpu/tables.hpp>
#include <deft/kernels/cpu/user_op.hpp>
#include <deft/kernels/host_tables.hpp>
#include <memory>
#include <string_view>

namespace deft::ext {
namespace {

std::string processor_name() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> info(std::fopen("/proc/cpuinfo", "re"),
                                                             &std::fclose);
  char buffer[1024];
  while (info && std::fgets(buffer, sizeof buffer, info.get())) {
    const std::string_view line(buffer);
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos)
      return std::string(line.substr(colon + 2, line.find('\n') - colon - 2));
  }
  return "CPU";
}

std::vector<kernel_table>& user_kernel_tables() {
  static auto& tables = *new std::vector<kernel_table>;
  return tables;
}

class cpu_device final : public device_runtime {
 public:
  explicit cpu_device(device_info info) : device_runtime(std::move(info)) {}
  memory& space() override { return host_memory(); }
  arena_pool& arenas() override {
    static auto& pool = *new arena_pool(host_memory());
    return pool;
  }
  event_ptr copy_in(void* to, const void* from, std::size_t bytes, buffer) override {
    std::memcpy(to, from, bytes);
    return nullptr;
  }
  event_ptr copy_out(void* to, const void* from, std::size_t bytes, buffer) override {
    std::memcpy(to, from, bytes);
    return nullptr;
  }
  void copy_within(void* to, const void* from, std::size_t bytes, device_step*) override {
    std::memcpy(to, from, bytes);
  }
  const kernel_entry* find_kernel(std::string_view op) const override {
    return find_cpu_kernel(op);
  }
};

}  // namespace

void register_cpu_kernels(kernel_table table) { user_kernel_tables().push_back(table); }

std::span<const kernel_table> cpu_kernel_tables() {
  static const auto& tables = *new std::vector<kernel_table>([] {
    std::vector<kernel_table> all{
        cpu::main_kernels(),
        cpu::linear_kernels(),
        cpu::elementwise_kernels(),
        cpu::user_kernels(),
    };
    for (const auto table : host_tables) all.push_back(table());
    all.insert(all.end(), user_kernel_tables().begin(), user_kernel_tables().end());
    return all;
  }());
  return tables;
}

const kernel_entry* find_cpu_kernel(std::string_view op) {
  static const auto& kernels = *new kernel_index(cpu_kernel_tables());
  return kernels.find(op);
}

std::unique_ptr<device_runtime> make_cpu_device(const device_name& task, int number) {
  static const auto& kernels = *new auto(announce(cpu_kernel_tables()));
  device_info info = describe(task, host_type, number);
  info.description = str(processor_name(), ", ", usable_processors(), " threads");
  info.memory = physical_memory();
  info.kernels = kernels;
  return std::make_unique<cpu_device>(std::move(info));
}

namespace {

std::vector<std::unique_ptr<device_runtime>> make_cpu_devices(const device_name& task,
                                                              const device_settings& settings) {
  const double count = settings.get("cpu_devices").value();
  if (count < 1 || count > 1024)
    fail(errc::invalid_argument, "cpu_devices must be 1 to 1024, not ", static_cast<int>(count));
  std::vector<std::unique_ptr<device_runtime>> all;
  for (int i = 0; i < count; ++i) all.push_back(make_cpu_device(task, i));
  return all;
}

constexpr device_setting cpu_settings[] = {
    {.flag = "cpu_devices",
     .meaning = "number of CPU devices: /cpu:0, /cpu:1, …",
     .otherwise = 1,
     .least_of_flag = 1,
     .advice = "session_options.cpu_devices says how many CPU devices this process has"}};

}  // namespace

constinit const device_kind cpu_kind{.type = host_type,
                                     .rank = 1,
                                     .host = true,
                                     .settings = cpu_settings,
                                     .make = &make_cpu_devices};

namespace {

bool has_cpu_kernel(const op_def& op, dtype t) {
  const kernel_entry* entry = find_cpu_kernel(op.name);
  return entry && entry->make && entry->types.has(t);
}

}  // namespace

std::vector<any_array> evaluate_on_host(const node_def& n, std::span<const any_array> inputs) {
  std::vector<tensor_type> in;
  std::vector<const void*> data;
  for (const auto& a : inputs) {
    in.push_back({a.shape(), a.type()});
    data.push_back(a.raw());
  }
  // What has no kernel here may have one on a device; else placement says so.
  if (!has_cpu_kernel(*n.op, dispatch_type(*n.op, in, n.outputs))) return {};
  if (const program* p = program_in(n.attributes))
    for (const auto& c : p->code)
      if (!has_cpu_kernel(*c.op, p->type_of(c.args[c.count - 1]))) return {};
  const kernel_ptr k = find_cpu_kernel(n.op->name)->make(n, in);
  std::vector<any_array> values;
  std::vector<void*> out;
  for (const auto& o : n.outputs) {
    values.emplace_back(o.type, o.shape);
    out.push_back(values.back().mutable_raw());
  }
  k->prepare(in, n.outputs);
  const buffer scratch = buffer::host(k->scratch());
  const step_context step;
  k->run({data.data(), out.data(), &step, scratch.data()});
  return values;
}

}  // namespace deft::ext
