// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/random.ipp: random tensors, with the processor's bits.
#pragma once
#include <algorithm>
#include <deft/core/philox.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/spec/random_bits.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
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
      const auto part = [&](int w, int drop) {
        return num::lane<T>(static_cast<std::int32_t>(words[static_cast<std::size_t>(w)] >> drop));
      };
      to[i] = number(draws::bits_of<T>(part, k)).v;
    }
  }
  static DEFT_HD constexpr std::uint32_t low(std::uint64_t v) {
    return static_cast<std::uint32_t>(v);
  }
  static DEFT_HD constexpr std::uint32_t high(std::uint64_t v) {
    return static_cast<std::uint32_t>(v >> 32);
  }
};

template <template <class> class Numbers, class T>
class kernel_of<spec::random<Numbers>, T> final : public queued<spec::random<Numbers>> {
  void ready() override { number_ = Numbers<T>(this->op_); }
  void queue(const kernel_call& c, stream& s) override {
    using F = block_of_numbers<Numbers<T>>;
    const auto& o = this->op_;
    const std::int64_t n = this->out().elements();
    const auto* counter = o.every_step && c.draw_word ? s.in<std::uint64_t>(c.draw_word) : nullptr;
    s.launch(draws::blocks_of<T>(n),
             F{number_, s.out<T>(c.out[0]), n, {F::low(o.key), F::high(o.key)}, counter});
  }

  Numbers<T> number_{};
};

}  // namespace
}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
