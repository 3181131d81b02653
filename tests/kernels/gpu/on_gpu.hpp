// SPDX-License-Identifier: Apache-2.0
// tests/kernels/gpu/on_gpu.hpp: runs one node on a GPU, simulated or real, without a session.
#pragma once
#include <deft/kernels/gpu/devices.hpp>

#include <cstring>

#include "../arrays.hpp"
#include "../run_kernel.hpp"
#include "gpus.hpp"

namespace testing {

/// The simulated GPU of the test program.
inline deft::ext::device_runtime& simulated_gpu() {
  static auto& all = *new auto(
      deft::ext::gpu::simulated::make_devices(deft::parse_device("/job:localhost/task:0"), 1));
  return *all[0];
}
/// The device that tests run on: the first GPU of this machine if CUDA is requested.
inline deft::ext::device_runtime& test_gpu() {
  if (!on_cuda()) return simulated_gpu();
  static auto& all =
      *new auto(deft::ext::gpu::cuda::make_devices(deft::parse_device("/job:localhost/task:0")));
  return *all[0];
}

/// Bytes on a device, between guard bytes that must not change. `shift`: from an aligned address.
/// AddressSanitizer sees the ends of simulated GPUs' blocks itself.
class device_bytes {
 public:
  device_bytes(deft::ext::device_runtime& d, std::size_t size, std::size_t shift = 0)
      : device_(d),
        size_(size),
        at_(guard + shift),
        bytes_(d.space().allocate(at_ + size + guard)) {
    put(deft::ext::buffer::host(whole()), [&](char* to) { std::memset(to, mark, whole()); });
  }

  void* data() const { return static_cast<char*>(bytes_.data()) + at_; }
  void set(const void* from) {
    put(deft::ext::buffer::host(whole()), [&](char* to) {
      std::memset(to, mark, whole());
      if (size_) std::memcpy(to + at_, from, size_);
    });
  }
  /// Copies after everything that was launched. Throws internal if a guard byte was written.
  void get(void* to) const {
    const deft::ext::buffer copy = deft::ext::buffer::host(whole());
    device_.copy_out(copy.data(), bytes_.data(), whole(), bytes_)->synchronize();
    const char* const from = static_cast<const char*>(copy.data());
    for (std::size_t i = 0; i < whole(); ++i)
      if ((i < at_ || i >= at_ + size_) && from[i] != mark)
        deft::ext::fail(deft::errc::internal, "written outside of an array, at byte ",
                        static_cast<std::int64_t>(i) - static_cast<std::int64_t>(at_), " of ",
                        size_);
    if (size_) std::memcpy(to, from + at_, size_);
  }

 private:
#ifdef __SANITIZE_ADDRESS__
  static constexpr std::size_t guard = 0;
#else
  static constexpr std::size_t guard = 256;
#endif
  static constexpr char mark = 0x5a;

  std::size_t whole() const { return at_ + size_ + guard; }
  template <class F>
  void put(const deft::ext::buffer& host, F fill) {
    fill(static_cast<char*>(host.data()));
    device_.wait(device_.copy_in(bytes_.data(), host.data(), whole(), host));
  }

  deft::ext::device_runtime& device_;
  std::size_t size_, at_;
  deft::ext::buffer bytes_;
};

/// Options for running a node on a GPU.
struct gpu_run {
  std::uint64_t step = 0;
  std::size_t shift = 0;       ///< elements by which every operand is off an aligned address
  std::uint32_t left_out = 0;  ///< a bit for each output that nothing needs
};

/// A kernel of a GPU, ready for inputs of these types.
struct prepared_on_gpu {
  deft::ext::node_def node;
  std::vector<deft::ext::tensor_type> in;
  deft::ext::device_runtime& gpu;
  deft::ext::kernel_ptr kernel;

  prepared_on_gpu(const deft::ext::op_def& op, deft::ext::attr_list attributes,
                  std::vector<deft::ext::tensor_type> types,
                  deft::ext::device_runtime& on = test_gpu())
      : node(node_of(op, std::move(attributes), types)), in(std::move(types)), gpu(on) {
    kernel = gpu.make_kernel(node, in);
    if (!kernel) deft::ext::fail(deft::errc::not_found, "no kernel on GPUs for ", op.name);
    kernel->prepare(in, node.outputs);
  }

  /// Throws the error that the device reports. Outputs that are left out are empty.
  std::vector<any_array> run(const std::vector<any_array>& inputs, const gpu_run& how = {}) {
    auto bytes_of = [&](std::size_t bytes, deft::dtype t) {
      return std::make_unique<device_bytes>(gpu, bytes, how.shift * deft::ext::size_of_dtype(t));
    };
    std::vector<std::unique_ptr<device_bytes>> ins, outs;
    std::vector<const void*> from;
    std::vector<void*> to;
    std::vector<any_array> outputs;
    for (const auto& i : inputs) {
      ins.push_back(bytes_of(i.bytes(), i.type()));
      ins.back()->set(i.raw());
      from.push_back(i.bytes() ? ins.back()->data() : nullptr);
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const bool gone = how.left_out >> o & 1;
      const auto& t = node.outputs[o];
      outputs.push_back(gone ? any_array() : any_array(t.type, t.shape));
      outs.push_back(gone ? nullptr : bytes_of(outputs.back().bytes(), t.type));
      to.push_back(gone || !outputs.back().bytes() ? nullptr : outs.back()->data());
    }
    device_bytes scratch(gpu, kernel->scratch()), word(gpu, sizeof how.step);
    word.set(&how.step);
    const deft::ext::step_context context{.draw = how.step};
    deft::ext::kernel_call call{from.data(), to.data(), &context};
    call.scratch = kernel->scratch() ? scratch.data() : nullptr;
    call.draw_word = word.data();
    const auto step = gpu.make_step();
    step->begin();
    gpu.launch({*kernel, call, static_cast<std::uint32_t>(from.size()),
                static_cast<std::uint32_t>(to.size())},
               step.get());
    for (std::size_t o = 0; o < outs.size(); ++o)
      if (outs[o]) outs[o]->get(outputs[o].mutable_raw());
    std::vector<char> unused(kernel->scratch());
    scratch.get(unused.data());
    for (std::size_t i = 0; i < ins.size(); ++i) {
      any_array after(inputs[i].type(), inputs[i].shape());
      ins[i]->get(after.mutable_raw());
      if (after.bytes() && std::memcmp(after.raw(), inputs[i].raw(), after.bytes()) != 0)
        deft::ext::fail(deft::errc::internal, "input ", i, " was written");
    }
    std::uint32_t item = 0;
    if (auto e = step->failure(item)) throw *e;
    return outputs;
  }
};

inline std::vector<any_array> run_on_gpu(const deft::ext::op_def& op,
                                         deft::ext::attr_list attributes,
                                         const std::vector<any_array>& inputs,
                                         const gpu_run& how = {}) {
  return prepared_on_gpu(op, std::move(attributes), types_of(inputs)).run(inputs, how);
}
/// The first output of Op on `inputs`.
template <class Op>
any_array run_op_on_gpu(const Op& o, const std::vector<any_array>& inputs,
                        const gpu_run& how = {}) {
  return run_on_gpu(deft::ext::record_of<Op>, deft::ext::encode(o), inputs, how)[0];
}

/// "" if simulated GPUs and the GPU under test give the same bits in every output, except those of
/// NaN, or the same error; else the difference.
inline std::string difference_from_simulated(const deft::ext::op_def& op,
                                             const deft::ext::attr_list& attributes,
                                             const std::vector<any_array>& inputs) {
  std::vector<any_array> outputs[2];
  std::string errors[2];
  deft::ext::device_runtime* const gpus[] = {&test_gpu(), &simulated_gpu()};
  for (int i = 0; i < 2; ++i) try {
      outputs[i] = prepared_on_gpu(op, attributes, types_of(inputs), *gpus[i]).run(inputs);
    } catch (const deft::error& e) {
      errors[i] = e.what();
    }
  if (errors[0] != errors[1]) return deft::ext::str("\"", errors[0], "\" and \"", errors[1], "\"");
  for (std::size_t o = 0; o < outputs[0].size(); ++o)
    if (const std::string d = other_bits(outputs[0][o], outputs[1][o]); !d.empty())
      return deft::ext::str("output ", o, " ", d);
  return {};
}

}  // namespace testing
