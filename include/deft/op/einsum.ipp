// SPDX-License-Identifier: Apache-2.0
// deft/op/einsum.ipp: how sums of products by letters become products of matrices.
#pragma once
#include <algorithm>
#include <deft/op/einsum.hpp>
#include <deft/op/extents.hpp>
#include <deft/op/matmul.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/sum.hpp>
#include <deft/op/transpose.hpp>
#include <optional>
#include <vector>

namespace deft::detail {
namespace {

/// A tensor whose axes have letters.
struct term {
  any_tensor x;
  axis_letters letters;
};

/// Those of `from` for which `is` holds, in its order.
template <class F>
axis_letters filtered(const axis_letters& from, F is) {
  axis_letters some;
  for (char c : from)
    if (is(c)) some.add(c);
  return some;
}
axis_letters joined(axis_letters first, const axis_letters& second) {
  for (char c : second) first.add(c);
  return first;
}
/// `letters` in the order in which `by` has them, if it has any.
axis_letters ordered(const axis_letters& letters, const axis_letters& by) {
  return by.n == 0 ? letters : filtered(by, [&](char c) { return letters.has(c); });
}

/// The sum over the letters that are not kept.
template <class F>
term summed(const term& t, F kept) {
  dims over;
  for (int i = 0; i < t.letters.n; ++i)
    if (!kept(t.letters.at[i])) over.push_back(i);
  if (over.empty()) return t;
  return {sum(t.x, axes(over), drop_axes(), {}), filtered(t.letters, kept)};
}
/// With its axes in this order.
any_tensor arranged(const term& t, const axis_letters& order) {
  if (t.letters == order) return t.x;
  dims perm;
  for (char c : order) perm.push_back(t.letters.find(c));
  return transpose(t.x, axes(perm), {});
}
/// With axes of extent 1 for the letters that it lacks.
any_tensor aligned(const term& t, const axis_letters& order) {
  const any_tensor x = arranged(t, ordered(t.letters, order));
  dims ones;
  for (int i = 0; i < order.n; ++i)
    if (!t.letters.has(order.at[i])) ones.push_back(i);
  return ones.empty() ? x : expand(x, ones);
}

/// A product of matrices, (batch, rows, inner) by (batch, inner, columns), of which all but `batch`
/// may be several letters. All letters but the last of `rows` are leading axes, too, for which
/// there is one matrix on the right.
struct letter_product {
  term left, right;
  axis_letters batch, rows, inner, columns;
  bool transpose_left = false, transpose_right = false;
  int moved = 0;  ///< tensors whose axes are moved

  letter_product(const term& l, const term& r, const axis_letters& of_batch,
                 const axis_letters& of_rows, const axis_letters& of_inner,
                 const axis_letters& of_columns, const axis_letters& wanted)
      : left(l), right(r), batch(of_batch), rows(of_rows), inner(of_inner), columns(of_columns) {
    const axis_letters of_left = joined(joined(batch, rows), inner),
                       of_right = joined(joined(batch, inner), columns);
    transpose_left = rows.n == 1 && l.letters == joined(joined(batch, inner), rows);
    transpose_right = columns.n > 0 && r.letters == joined(joined(batch, columns), inner);
    moved = !(transpose_left || l.letters == of_left) +
            !(transpose_right || r.letters == of_right) + !(wanted.n == 0 || wanted == letters());
  }
  axis_letters letters() const { return joined(joined(batch, rows), columns); }

  term write() const {
    const int lead = batch.n, last = lead + rows.n;
    any_tensor a = transpose_left ? left.x : arranged(left, joined(joined(batch, rows), inner));
    a = merge_axes(a, transpose_left ? lead : last, inner.n);
    if (rows.n == 0) a = merge_axes(a, lead, 0);
    any_tensor b = right.x;
    if (transpose_right) {
      b = merge_axes(merge_axes(b, lead + columns.n, inner.n), lead, columns.n);
    } else {
      b = arranged(right, joined(joined(batch, inner), columns));
      b = merge_axes(merge_axes(b, lead + inner.n, columns.n), lead, inner.n);
    }
    if (lead > 0)
      for (int i = 1; i < rows.n; ++i) b = merge_axes(b, lead, 0);
    return {with_letters(matmul(a, b, transpose_left, transpose_right, {})), letters()};
  }

 private:
  /// The result, whose last axis is all columns, and the one before it the last of the rows.
  any_tensor with_letters(const any_tensor& z) const {
    if (rows.n > 0 && columns.n == 1) return z;
    dims to;
    int unknown = 0;
    for (int i = 0; i < batch.n + rows.n; ++i) to.push_back(op::reshape::extent_of(i));
    for (char c : columns) {
      const std::int64_t extent = right.x.shape()[right.letters.find(c)];
      unknown += extent == dyn;
      to.push_back(columns.n == 1 ? op::reshape::extent_of(z.rank() - 1) : extent);
    }
    if (columns.n == 1 || unknown <= 1) return add_reshape(z, to, {});
    // Several extents that a run computes.
    std::vector<size_argument> sizes;
    for (int i = 0; i < batch.n + rows.n; ++i) sizes.emplace_back(size_of(z, axes{i}, {}));
    for (char c : columns) sizes.emplace_back(size_of(right.x, axes{right.letters.find(c)}, {}));
    for (int i = 0; i < to.n; ++i) to[i] = op::reshape::extent_of(i + 1);
    const run_extents all("einsum", "extent", size_list(std::move(sizes)), z.type(), {});
    const output in[] = {z.handle(), all.carrier.handle()};
    return apply_any(op::reshape{to}, in, {});
  }
};

/// The sum over the letters that both have and that are not kept. Its letters are in the order that
/// is `wanted`, or in any if that is empty.
template <class F>
term product(const term& a, const term& b, F kept, const axis_letters& wanted) {
  const auto shared = [&](char c) { return a.letters.has(c) && b.letters.has(c); };
  const axis_letters batch = filtered(a.letters, [&](char c) { return shared(c) && kept(c); }),
                     inner = filtered(a.letters, [&](char c) { return shared(c) && !kept(c); }),
                     of_a = filtered(a.letters, [&](char c) { return !shared(c); }),
                     of_b = filtered(b.letters, [&](char c) { return !shared(c); });
  if (inner.n == 0) {
    const axis_letters order = wanted.n ? wanted : joined(a.letters, of_b);
    return {aligned(a, order) * aligned(b, order), order};
  }
  // The one of several that moves the fewest tensors' axes.
  std::optional<letter_product> best;
  for (bool swap : {false, true}) {
    const term &l = swap ? b : a, &r = swap ? a : b;
    for (const axis_letters& batch_by : {l.letters, r.letters, wanted})
      for (const axis_letters& inner_by : {l.letters, r.letters})
        for (const axis_letters& others_by : {axis_letters(), wanted}) {
          const letter_product some(
              l, r, ordered(batch, batch_by), ordered(swap ? of_b : of_a, others_by),
              ordered(inner, inner_by), ordered(swap ? of_a : of_b, others_by), wanted);
          if (!best || some.moved < best->moved) best = some;
        }
  }
  return best->write();
}

/// Throws invalid_argument unless the operands are what the text says, as far as that is known.
void check_operands(std::string_view text, std::span<const axis_letters> in,
                    std::span<const any_tensor> x) {
  std::vector<dims> shapes;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!x[i].valid()) refuse_empty_operand("einsum", i + 1, {}, x[i].unchecked());
    if (x[i].rank() != in[i].n)
      refuse_call(x[i],
                  str("[einsum] \"", text, "\" has ", in[i].n, " letters for operand ", i + 1,
                      ", which is ", x[i].shape()),
                  {});
    if (x[i].type() != x[0].type())
      refuse_call(x[i],
                  str("[einsum] the operands' dtypes differ: ", x[0].type(), " and ", x[i].type(),
                      "; use cast"),
                  {});
    shapes.push_back(x[i].shape());
  }
  const char c = disagreeing_letter(in, shapes);
  if (c == 0) return;
  std::string all;
  for (const dims& d : shapes) all += str(all.empty() ? "" : " x ", d);
  refuse_call(x[0], str("[einsum] \"", text, "\" the extents of ", c, " differ: ", all), {});
}

}  // namespace

any_tensor contract(std::string_view text, std::span<const axis_letters> in,
                    const axis_letters& out, std::span<const any_tensor> x) {
  check_operands(text, in, x);
  term t{x[0], in[0]};
  for (std::size_t i = 1; i < x.size(); ++i) {
    const term u{x[i], in[i]};
    const auto kept = [&](char c) {
      return out.has(c) || std::ranges::any_of(in.subspan(i + 1), [c](const axis_letters& later) {
               return later.has(c);
             });
    };
    const term a = summed(t, [&](char c) { return kept(c) || u.letters.has(c); }),
               b = summed(u, [&](char c) { return kept(c) || t.letters.has(c); });
    t = product(a, b, kept, i + 1 == x.size() ? out : axis_letters());
  }
  return arranged(summed(t, [&](char c) { return out.has(c); }), out);
}

}  // namespace deft::detail
