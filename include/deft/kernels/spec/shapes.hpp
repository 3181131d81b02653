// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/shapes.hpp: operations that move elements and compute nothing: broadcast_to,
// transpose, concat and its parts, slice and updates by it, pad; and size_of and arange.
#pragma once
#include <deft/kernels/spec/kernel_spec.hpp>
#include <deft/kernels/spec/row_layout.hpp>
#include <deft/kernels/spec/strided_copy.hpp>
#include <deft/op/arange.hpp>
#include <deft/op/assign_slice.hpp>
#include <deft/op/broadcast_to.hpp>
#include <deft/op/concat.hpp>
#include <deft/op/pad.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/slice.hpp>
#include <deft/op/transpose.hpp>

namespace deft::ext::spec {

class broadcast_to : public kernel_spec<op::broadcast_to, plain_dtypes> {
 protected:
  void ready() override { layout_ = row_layout({in_.data(), 1}, out_[0]); }
  row_layout layout_;
};

class transpose : public kernel_spec<op::transpose, plain_dtypes> {
 protected:
  void ready() override { levels_ = transpose_levels(in(0), op_.perm); }
  transpose_levels levels_;
};

class concat : public kernel_spec<op::concat, plain_dtypes> {
 protected:
  /// Calls copy(from, from_step, to, to_step, bytes, count) for each input: `count` runs of `bytes`
  /// bytes, which begin so many bytes apart.
  template <class F>
  void each_input(const kernel_call& c, F copy) const {
    if (out().elements() == 0) return;
    const byte_runs whole(out_[0], op_.axis);
    char* to = static_cast<char*>(c.out[0]);
    for (std::size_t i = 0; i < in_.size(); ++i) {
      const byte_runs part(in_[i], op_.axis);
      copy(static_cast<const char*>(c.in[i]), part.bytes, to, whole.bytes, part.bytes, part.count);
      to += part.bytes;
    }
  }
};

class concat_part : public kernel_spec<op::concat_part, plain_dtypes> {
 protected:
  /// Calls copy, as concat does, for the part.
  template <class F>
  void take_part(const kernel_call& c, F copy) const {
    if (out().elements() == 0) return;
    const byte_runs whole(in_[0], op_.axis), part(out_[0], op_.axis);
    const char* from = static_cast<const char*>(c.in[0]);
    for (std::int64_t i = 0; i < op_.part; ++i)
      from += byte_runs(in_[static_cast<std::size_t>(i) + 1], op_.axis).bytes;
    copy(from, whole.bytes, static_cast<char*>(c.out[0]), part.bytes, part.bytes, part.count);
  }
};

class slice : public kernel_spec<op::slice, plain_dtypes> {
 protected:
  void ready() override {
    const auto place = op_.place_in(in(0), std::span(in_).subspan(1));
    if (op_.step.empty())
      runs_ = {in(0), place.begin, out()};
    else
      take_steps({in(0), place, op_.step});
  }
  void take_steps(const stepped_part& part) {
    levels_ = {};
    levels_.first_from = part.first;
    for (std::int64_t i = out().rank(), dense = 1; i-- > 0; dense *= out()[i])
      levels_.add(out()[i], part.stride[i], dense);
  }
  part_runs runs_;         ///< without steps
  matched_levels levels_;  ///< with steps
};

/// The first input is the variable, the second the value; what says where the part lies follows.
template <class Op>
class slice_update
    : public kernel_spec<Op, std::is_same_v<Op, op::assign_slice> ? plain_dtypes : numeric_dtypes> {
 protected:
  void ready() override {
    const op::slice part = this->op_.part();
    const auto place = part.place_in(this->in(0), std::span(this->in_).subspan(2), Op::name);
    const stepped_part to(this->in(0), place, part.step);
    const dims all = part.stepped(place.size);
    levels_ = {};
    levels_.first_to = to.first;
    elements_ = all.elements();
    std::int64_t dense = 1;
    for (int i = all.rank(); i-- > 0; dense *= this->in(1)[i])
      levels_.add(all[i], this->in(1)[i] == 1 ? 0 : dense, to.stride[i]);
  }
  matched_levels levels_;
  std::int64_t elements_ = 0;
};

class pad : public kernel_spec<op::pad, plain_dtypes> {
 protected:
  void ready() override { before_ = positions(operation::name, op_.before, in_); }
  dims before_;
};

class size_of : public kernel_spec<op::size_of, all_dtypes> {
 protected:
  void ready() override {
    size_ = 1;
    for (auto a : op_.axes) size_ *= in(0)[static_cast<int>(a)];
  }
  std::int64_t size_ = 1;
};

using arange = kernel_spec<op::arange, numeric_dtypes, by_result>;

using shape_kernels =
    kernel_list<broadcast_to, transpose, concat, concat_part, slice, pad, size_of, arange,
                slice_update<op::assign_slice>, slice_update<op::assign_add_slice>,
                slice_update<op::assign_sub_slice>>;

}  // namespace deft::ext::spec
