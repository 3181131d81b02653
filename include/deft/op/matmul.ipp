// SPDX-License-Identifier: Apache-2.0
// deft/op/matmul.ipp: shape rule of matmul, vectors, and what its gradient is made of.
#pragma once
#include <algorithm>
#include <deft/op/compute_in.hpp>
#include <deft/op/matmul.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/sum_to.hpp>
#include <deft/op/transpose.hpp>
#include <utility>

namespace deft {

namespace op {
namespace {
/// What is wrong with a product of operands of these shapes.
std::string complaint(const matmul& o, matmul::fault f, const dims& a, const dims& b) {
  const std::string both = str(a, o.transpose_a ? "T" : "", " x ", b, o.transpose_b ? "T" : "");
  if (f == matmul::fault::inner) return str("[matmul] inner extents differ: ", both);
  if (f == matmul::fault::leading)
    return str("[matmul] leading extents differ on axis ",
               matmul::disagreeing_axis(matmul::as_row(a), matmul::as_column(b)),
               ", and none is 1: ", both);
  return str("[matmul] takes matrices, batches of them, and vectors where nothing is transposed: ",
             both);
}
}  // namespace

dims matmul::shape_checked(const dims& a, const dims& b) const {
  dims out;
  if (const fault f = shape(a, b, out); f != fault::none)
    fail(errc::invalid_argument, complaint(*this, f, a, b));
  return out;
}

tensor_type matmul::infer(std::span<const tensor_type> in) const {
  const auto &a = in[0], &b = in[1];
  if (a.type != b.type)
    fail(errc::invalid_argument, "[matmul] the operands' dtypes differ: ", a.type, " and ", b.type,
         "; use cast");
  if (!is_floating(a.type) && a.type != dtype::int32 && a.type != dtype::int64)
    fail(errc::invalid_argument, "[matmul] is not defined for ", a.type);
  return {shape_checked(a.shape, b.shape), a.type};
}

}  // namespace op

namespace detail {

any_tensor multiply(const op::matmul& o, const any_tensor& a, const any_tensor& b,
                    source_location w) {
  const auto is_vector = [](const any_tensor& x) { return x.valid() && x.rank() == 1; };
  const bool row = is_vector(a), column = is_vector(b);
  const auto product = [&](const any_tensor& x, const any_tensor& y) {
    return computed(x, y, w, [&](const any_tensor& p, const any_tensor& q) {
      const output in[] = {p.unchecked(), q.unchecked()};
      return apply_any(o, in, w);
    });
  };
  if (o.transpose_a || o.transpose_b || !a.valid() || !b.valid() || (!row && !column))
    return product(a, b);
  dims out;
  if (const auto f = o.shape_of_call(a.shape(), b.shape(), out); f != op::matmul::fault::none)
    refuse_call(a, op::complaint(o, f, a.shape(), b.shape()), w);
  const any_tensor y = product(row ? expand(a, {0}, w) : a, column ? expand(b, {1}, w) : b);
  dims to;
  for (int i = 0; i < y.rank(); ++i)
    if (!(row && i == y.rank() - 2) && !(column && i == y.rank() - 1))
      to.push_back(op::reshape::extent_of(i));
  return add_reshape(y, to, w);
}

namespace {
/// The sum over the leading axes of `dx` along which `x`, an operand, was broadcast.
any_tensor sum_batches(const any_tensor& dx, const any_tensor& x, const any_tensor& other) {
  // Extents that only a run knows are the result's where the other operand has none, or 1.
  const dims from = op::matmul::leading(dx.shape()), to = op::matmul::leading(x.shape()),
             there = op::matmul::leading(other.shape());
  bool whole = from == to;
  for (int i = 1; whole && i <= to.n; ++i)
    whole = to[to.n - i] != dyn || i > there.n || there[there.n - i] == 1 || same(x, other);
  return whole ? dx : sum_to(dx, x);
}
}  // namespace

std::tuple<any_tensor, any_tensor> product_gradients(const op::matmul& o, const any_tensor& a,
                                                     const any_tensor& b, const any_tensor& dz) {
  const bool ta = o.transpose_a, tb = o.transpose_b;
  const any_tensor da = ta ? matmul(b, dz, tb, true) : matmul(dz, b, false, !tb);
  any_tensor x = a, dy = dz;
  bool tx = ta;
  // Where one matrix b is for many of a, all of their rows are multiplied at once, not one product
  // for each, to be added up then.
  const int most = a.rank() - 2, b_leading = b.rank() - 2;
  int many = 0;
  while (many < most && (many >= b_leading || b.shape()[b_leading - 1 - many] == 1)) ++many;
  if (many > 0) {
    if (ta) {
      dims perm = op::all_axes_of(a.rank());
      std::swap(perm[perm.n - 2], perm[perm.n - 1]);
      x = transpose(a, axes(perm));
      tx = false;
    }
    x = merge_axes(x, x.rank() - 2 - many, many + 1);
    dy = merge_axes(dy, dy.rank() - 2 - many, many + 1);
  }
  any_tensor db = tb ? matmul(dy, x, true, tx) : matmul(x, dy, !tx, false);
  dims ones;
  for (int i = std::min(many, b_leading); i > 0; --i) ones.push_back(db.rank() - 2 + ones.n);
  if (!ones.empty()) db = expand(db, ones);
  return {sum_batches(da, a, b), sum_batches(db, b, a)};
}

}  // namespace detail

any_tensor matmul(const any_tensor& a, const any_tensor& b, bool transpose_a, bool transpose_b,
                  ext::source_location w) {
  return detail::multiply({transpose_a, transpose_b}, a, b, w);
}

}  // namespace deft
