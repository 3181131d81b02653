// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/string_equality.ipp: equal and not_equal of strings, element by element.
#pragma once
#include <array>
#include <deft/core/string_span.hpp>
#include <deft/kernels/cpu/tables.hpp>
#include <deft/kernels/typed_kernel.hpp>
#include <deft/op/equal.hpp>

namespace deft::ext::cpu {
namespace {

class string_equality final : public typed_kernel {
 public:
  explicit string_equality(bool equal) : equal_(equal) {}

  void run(const kernel_call& c) override {
    const string_span a(c.in[0], in(0).elements()), b(c.in[1], in(1).elements());
    bool* const to = static_cast<bool*>(c.out[0]);
    std::array<std::int64_t, max_rank> at{};
    std::int64_t x = 0, y = 0;
    for (std::int64_t i = 0; i < out().elements(); ++i) {
      to[i] = (a[x] == b[y]) == equal_;
      for (int axis = out().rank(); axis-- > 0;) {
        x += steps_[0][axis], y += steps_[1][axis];
        if (++at[static_cast<std::size_t>(axis)] < out()[axis]) break;
        at[static_cast<std::size_t>(axis)] = 0;
        x -= steps_[0][axis] * out()[axis], y -= steps_[1][axis] * out()[axis];
      }
    }
  }

 private:
  /// How far the next element along each axis is in each operand: 0 where it is broadcast.
  void ready() override {
    for (std::size_t k = 0; k < 2; ++k) {
      std::int64_t step = 1;
      for (int axis = out().rank(); axis-- > 0;) {
        const int own = axis - out().rank() + in(k).rank();
        steps_[k][axis] = own < 0 || in(k)[own] == 1 ? 0 : step;
        if (own >= 0) step *= in(k)[own];
      }
    }
    cost_ = 20 + 5 * static_cast<double>(out().elements());
  }

  bool equal_;
  std::int64_t steps_[2][max_rank] = {};
};

}  // namespace

kernel_ptr make_string_equality(const node_def& n) {
  return std::make_unique<string_equality>(n.op == &record_of<op::equal>);
}

}  // namespace deft::ext::cpu
