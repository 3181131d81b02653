// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/random.ipp: random tensors, with the processor's bits.
#pragma once
#include <algorithm>
#include <deft/core/philox.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/spec/random_bits.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace drawing {
namespace {

/// The elements that a block of Philox has the words of.
template <class Numbers>
struct block_of_numbers {
  using T = typename Numbers::type;
  Numbers number;
  T* to;
  std::int64_t count;
  std::uint32_t key[2];
  const std::uint64_t* counter;  ///< null: 0

  DEFT_HD void operator()(std::int64_t block) const {
    const std::uint64_t step = counter ? *counter : 0;
    const auto b = static_cast<std::uint64_t>(block);
    const auto words = philox({low(b), high(b), low(step), high(step)}, {key[0], key[1]});
    for (int k = 0; k < draws::block_elements<T>; ++k) {
      const std::int64_t i = draws::element_of<T>(block, k);
      if (i >= count) return;
      to[i] = number(num::lane<double>(draws::bits_of<T>(words.data(), k, 2))).v;
    }
  }
  static DEFT_HD constexpr std::uint32_t low(std::uint64_t v) {
    return static_cast<std::uint32_t>(v);
  }
  static DEFT_HD constexpr std::uint32_t high(std::uint64_t v) {
    return static_cast<std::uint32_t>(v >> 32);
  }
};

template <class Numbers>
class random_kernel final : public queued_kernel {
 public:
  explicit random_kernel(const typename Numbers::op_type& o)
      : key_(o.key), every_step_(o.every_step), number_(o) {}

  void queue(const kernel_call& c, stream& s) override {
    using F = block_of_numbers<Numbers>;
    const std::int64_t n = out().elements();
    const auto* counter = every_step_ && c.draw_word ? s.in<std::uint64_t>(c.draw_word) : nullptr;
    s.launch(draws::blocks_of<typename F::T>(n),
             F{number_, s.out<typename F::T>(c.out[0]), n, {F::low(key_), F::high(key_)}, counter});
  }

 private:
  std::uint64_t key_;
  bool every_step_;
  Numbers number_;
};

template <template <class> class Numbers>
kernel_ptr make(const node_def& n, std::span<const tensor_type>) {
  const auto o = decode<typename Numbers<float>::op_type>(n.attributes);
  return kernel_for<floating_dtypes>(
      n, o.type, [&]<class T>() { return std::make_unique<random_kernel<Numbers<T>>>(o); });
}

}  // namespace
}  // namespace drawing

kernel_table random_kernels() {
  static constexpr kernel_entry table[] = {
      {op::random_uniform::name, floating_dtypes, &drawing::make<draws::uniform_numbers>},
      {op::random_normal::name, floating_dtypes, &drawing::make<draws::normal_numbers>},
      {op::truncated_normal::name, floating_dtypes, &drawing::make<draws::truncated_numbers>},
  };
  return table;
}

}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
