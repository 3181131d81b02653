// SPDX-License-Identifier: Apache-2.0
// deft/op/subscript.ipp: where parts lie, and updates of parts of variables.
#pragma once
#include <deft/op/add.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/subscript.hpp>

namespace deft {

detail::run_range range(const detail::range_bound& first, const detail::range_bound& last,
                        std::int64_t step, ext::source_location w) {
  if (step == 0) throw error(errc::invalid_argument, "[range] expects a step other than 0", {}, w);
  return {first, last, step, w};
}

namespace detail {
namespace {

size_argument plus(const size_argument& a, std::int64_t n) {
  if (n == 0) return a;
  return a.tensor.valid() ? size_argument(a.tensor + n) : size_argument(a.number + n);
}
/// a - b.
size_argument minus(const size_argument& a, const size_argument& b) {
  if (b.tensor.valid()) return a.tensor.valid() ? a.tensor - b.tensor : a.number - b.tensor;
  return plus(a, -b.number);
}

/// Finds places along an axis of x.
class axis_places {
 public:
  axis_places(const any_tensor& x, int axis, source_location w)
      : x_(x), axis_(axis), extent_(x.shape()[axis]), location_(w) {}

  void index(const size_argument& i, size_argument& begin, size_argument& size) const {
    size = 1;
    begin = i;
    if (i.tensor.valid()) return;
    if (extent_ != dyn && (i.number < -extent_ || i.number >= extent_))
      refuse(i.number, "the index", extent_ - 1);
    begin = from_front({i.number, i.number < 0});
  }
  void range(const run_range& r, size_argument& begin, size_argument& size) const {
    const std::int64_t most = r.step > 0 ? extent_ : extent_ - 1;
    check(r.first, most);
    check(r.last, most);
    const axis_interval i = axis_interval::of(r.first, r.last, r.step);
    const auto [low, high] =
        r.step > 0 ? std::pair(&r.first, &r.last) : std::pair(&r.last, &r.first);
    const bool numbers = !low->at.tensor.valid() && !high->at.tensor.valid();
    begin = place(*low, i.begin, r.step);
    if (numbers && i.begin.from_end == i.end.from_end)
      size = i.end.offset - i.begin.offset;
    else if (high->open)
      return void(size = dyn);  // up to the end
    else
      size = minus(place(*high, i.end, r.step), begin);
    if (!size.tensor.valid() && size.number < 0)
      refuse_call(
          x_,
          str("[range] a range along axis ", axis_, " of ", x_.shape(), " ends before it begins"),
          location_);
  }

 private:
  /// Where an end is, from the front. `at`: if it is a number, or open.
  size_argument place(const range_bound& b, axis_position at, std::int64_t step) const {
    if (b.at.tensor.valid()) return plus(b.at, step > 0 ? 0 : 1);
    return from_front(at);
  }
  size_argument from_front(axis_position p) const {
    if (!p.from_end) return p.offset;
    if (extent_ != dyn) return p.in(extent_);
    const axes along{axis_};
    return plus(size_argument(size_along(x_, &along, location_)), p.offset);
  }
  void check(const range_bound& b, std::int64_t most) const {
    if (b.open || b.at.tensor.valid() || extent_ == dyn) return;
    if (b.at.number < -extent_ || b.at.number > most) refuse(b.at.number, "the bound", most);
  }
  [[noreturn]] void refuse(std::int64_t n, std::string_view what, std::int64_t most) const {
    refuse_call(
        x_,
        str("[subscript] ", what, " ", n, " of axis ", axis_, " is out of range: its extent is ",
            extent_, " in ", x_.shape(), most < 0 ? str() : str(", so that it is at most ", most)),
        location_);
  }

  const any_tensor& x_;
  int axis_;
  std::int64_t extent_;
  source_location location_;
};

}  // namespace

part_place place_of(const any_tensor& x, std::span<const subscript_value> s) {
  part_place p;
  const int rank = x.rank(), left = axes_of_ellipsis(s, rank);
  for (const subscript_value& i : s)
    if (i.range.location.known()) p.location = i.range.location;
  if (left < 0)
    refuse_call(x,
                str("[subscript] expects one subscript of each axis of ", x.shape(),
                    " at most, and one ellipsis, and got more"),
                p.location);
  const auto add = [&](std::int64_t step) {
    p.step.push_back(step);
    p.begin.emplace_back(0);
    p.size.emplace_back(dyn);
  };
  const auto add_all = [&](int count) {
    for (; count > 0; --count) {
      p.layout.push_back(static_cast<std::int64_t>(p.begin.size()));
      add(1);
    }
  };
  for (const subscript_value& i : s) {
    const auto axis = static_cast<int>(p.begin.size());
    switch (i.kind) {
      case subscript_kind::newaxis:
        p.layout.push_back(-1);
        break;
      case subscript_kind::all:
        add_all(1);
        break;
      case subscript_kind::ellipsis:
        add_all(left);
        break;
      case subscript_kind::index:
        add(1);
        axis_places(x, axis, p.location).index(i.range.first.at, p.begin.back(), p.size.back());
        p.whole = false;
        break;
      case subscript_kind::range:
        p.layout.push_back(axis);
        add(i.range.step);
        axis_places(x, axis, p.location).range(i.range, p.begin.back(), p.size.back());
        p.whole = false;
    }
  }
  add_all(rank - static_cast<int>(p.begin.size()));
  if (p.step == dims::filled(rank, 1)) p.step = {};
  return p;
}

any_tensor part_at(const any_tensor& x, const part_place& p) {
  any_tensor part = x;
  if (!p.whole) {
    const size_list begin(p.begin), size(p.size);
    part = slice_at(x, begin, part_sizes(x, begin, size, p.location), p.location, p.step);
  }
  if (p.layout == op::all_axes_of(x.rank())) return part;
  dims to;
  for (auto axis : p.layout) {
    const std::int64_t e = axis < 0 ? 1 : part.shape()[static_cast<int>(axis)];
    to.push_back(e == dyn ? op::reshape::extent_of(static_cast<int>(axis)) : e);
  }
  return add_reshape(part, to, p.location);
}

output update_part(const op_def& def, const output& variable, const part_place& p,
                   const any_tensor& value, source_location w) {
  const any_tensor x(variable);
  const size_list begin(p.begin), size(p.size);
  const part_arguments a(x, begin, part_sizes(x, begin, size, w), w);
  // The value with the variable's axes: those of extent 1 are broadcast.
  const int before = p.layout.rank() - value.rank();
  dims to = dims::filled(x.rank(), 1);
  bool fits = before >= 0;
  for (int i = 0; fits && i < value.rank(); ++i) {
    const std::int64_t axis = p.layout[before + i], e = value.shape()[i];
    if (axis >= 0)
      to[static_cast<int>(axis)] = e == dyn ? op::reshape::extent_of(i) : e;
    else
      fits = e == 1 || e == dyn;
  }
  if (!fits)
    refuse_call(value,
                str("[", def.name, "] ", value.handle().type(),
                    " cannot be broadcast to the part of variable \"", name_of(*variable.node),
                    "\", ", x.handle().type()),
                w);
  const bool as_is = value.rank() == x.rank() && p.layout == op::all_axes_of(x.rank());
  std::vector<output> in = a.inputs;
  in.insert(in.begin(), as_is ? value.handle() : add_reshape(value, to, w).handle());
  op::assign_slice update;
  static_cast<op::variable_state&>(update) = decode<op::variable>(variable.node->attributes);
  update.begin = a.part.begin;
  update.size = a.part.size;
  update.step = p.step;
  return at_variable(def, variable, encode(update), in, w);
}

any_tensor scalar_for(const output& like, const literal& v, source_location w) {
  try {
    return any_tensor(constant_with(like, scalar_of(v, like.type().type), w));
  } catch (const error& e) {
    throw error(e.code(), e.message(), name_of(*like.node), w);
  }
}

}  // namespace detail
}  // namespace deft
