// SPDX-License-Identifier: Apache-2.0
// deft/op/arange.ipp: shape rule of arange, and numbers of steps.
#pragma once
#include <algorithm>
#include <cmath>
#include <deft/op/add.hpp>
#include <deft/op/arange.hpp>
#include <deft/op/cast.hpp>
#include <deft/op/div.hpp>
#include <deft/op/equal.hpp>
#include <deft/op/floor.hpp>
#include <deft/op/logical_and.hpp>
#include <deft/op/maximum.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/neg.hpp>
#include <deft/op/not_equal.hpp>
#include <deft/op/sign.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/where.hpp>

namespace deft {

ext::tensor_type op::arange::infer(std::span<const ext::tensor_type> in) const {
  if (!ext::is_numeric(type))
    ext::fail(errc::invalid_argument, "[arange] is not defined for ", type);
  const dims out = shape_by(name, shape, in);
  if (out.rank() != 1)
    ext::fail(errc::invalid_argument, "[arange] expects a shape of one axis, and got ", out);
  return {out, type};
}

namespace detail {

any_tensor add_arange(const dims& declared, const size_argument& n, dtype type, source_location w) {
  const run_extents e = declared_extents("arange", declared, {n}, type, w);
  std::vector<output> in;
  if (e.carrier.valid()) in.push_back(e.carrier.handle());
  return apply_any(op::arange{e.known, type}, in, w);
}

std::int64_t steps_between(std::int64_t begin, std::int64_t end, std::int64_t step) {
  if (step == 0) fail(errc::invalid_argument, "[arange] the step is 0");
  // Without sign, where the distance may be larger than any number.
  const auto a = static_cast<std::uint64_t>(begin), b = static_cast<std::uint64_t>(end),
             s = static_cast<std::uint64_t>(step);
  if (step > 0 ? begin >= end : begin <= end) return 0;
  const std::uint64_t far = step > 0 ? b - a : a - b, by = step > 0 ? s : 0 - s;
  return static_cast<std::int64_t>(std::min<std::uint64_t>((far - 1) / by, max_elements) + 1);
}

std::int64_t steps_between(double begin, double end, double step) {
  if (step == 0) fail(errc::invalid_argument, "[arange] the step is 0");
  const double n = std::ceil((end - begin) / step);
  if (n != n)
    fail(errc::invalid_argument, "[arange] expects numbers that steps of ", step, " lead from ",
         begin, " to ", end);
  return static_cast<std::int64_t>(std::clamp(n, 0., static_cast<double>(max_elements) + 1));
}

any_tensor steps_between(const any_tensor& begin, const any_tensor& end, const any_tensor& step,
                         source_location w) {
  if (is_floating(begin.type())) {
    const any_tensor b = cast(begin, dtype::float64, w), e = cast(end, dtype::float64, w),
                     s = cast(step, dtype::float64, w);
    // A step of 0, or a NaN, is no number of steps, which the shape rule refuses.
    const any_tensor n = (e - b) / s;
    return where(s != 0 && n == n, maximum(cast(-floor(-n), dtype::int64, w), 0), -1);
  }
  const any_tensor b = cast(begin, dtype::int64, w), e = cast(end, dtype::int64, w),
                   s = cast(step, dtype::int64, w);
  return where(s == 0, -1, maximum((e - b + s - sign(s)) / where(s == 0, 1, s), 0));
}

any_tensor arange_any(dtype wanted, const any_argument& begin, const any_argument& end,
                      const any_argument& step, source_location w) {
  const any_argument* const all[] = {&begin, &end, &step};
  const auto first =
      std::ranges::find_if(all, [](const any_argument* a) { return !a->is_literal; });
  const dtype type = wanted != dtype::none ? wanted : any_tensor((*first)->tensor).type();
  any_tensor x[3];
  for (int i = 0; i < 3; ++i) {
    x[i] = all[i]->is_literal ? literal_like(all[i]->number, type, w) : any_tensor(all[i]->tensor);
    if (x[i].type() != type || x[i].rank() != 0)
      refuse_call(x[i],
                  str("[arange] expects scalars of ", type, ", and got ", x[i].handle().type()), w);
  }
  return arange_from(x[0], x[2], steps_between(x[0], x[1], x[2], w), w);
}

any_tensor arange_from(const any_tensor& begin, const any_tensor& step, const size_argument& n,
                       source_location w) {
  const any_tensor i = add_arange({dyn}, n, begin.type(), w);
  return i * step + begin;
}

}  // namespace detail
}  // namespace deft
