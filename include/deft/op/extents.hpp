// SPDX-License-Identifier: Apache-2.0
// deft/op/extents.hpp: extents and indices that a run computes.
//
// A shape that depends on values is a value itself: the operation `extents` reads integers and
// yields a tensor without elements, of the extents (0, n0, n1, …), which are those integers.
// Operations that take extents or indices from it have it as their last input, and their shape
// rules see its shape as they see any other: before they run, when memory is reserved and kernels
// are prepared. As it has no elements, it costs nothing to copy to a GPU or to send to a task.
// `extents` itself runs on a processor of the task (op_traits::on_processor), so that integers that
// a GPU computes are copied to the host once.
#pragma once
#include <concepts>
#include <deft/op/base/shapes.hpp>
#include <string>
#include <vector>

namespace deft::op {
struct extents {
  static constexpr std::string_view name = "extents";
  static constexpr int arity = 1;
  static constexpr int max_arity = max_rank;  ///< int64: scalars, or vectors of several
  static constexpr op_traits traits = op_traits::on_processor;
  dims shape;                       ///< `dyn`: the next integer of the inputs
  dtype type = dtype::float32;      ///< of what is to have that shape
  std::string of, what = "extent";  ///< for errors: the operation, and what of an axis it takes
  static constexpr auto fields =
      field_list(field{"shape", &extents::shape}, field{"dtype", &extents::type},
                 field{"of", &extents::of}, field{"what", &extents::what});

  tensor_type infer(std::span<const tensor_type> in) const;
  /// (0, n0, n1, …). Throws invalid_argument, in the name of `of`, if one is negative or too large.
  dims with(std::span<const std::int64_t> values) const;
};

/// What the value of `extents`, the last of some inputs, says: (n0, n1, …). Throws invalid_argument
/// unless it has so many.
dims extents_in(std::string_view name, std::span<const tensor_type> in, int count);

/// The shape of a result without other operands: `declared`, or that of a single input if that is
/// empty, or `declared` with the extents that the input says. Throws invalid_argument.
dims shape_by(std::string_view name, const dims& declared, std::span<const tensor_type> in);

}  // namespace deft::op

namespace deft {
namespace detail {

/// The extents of one axis: a number, or an integer of the graph.
class size_argument {
 public:
  template <std::integral N>
  size_argument(N n) : number(static_cast<std::int64_t>(n)) {}  // NOLINT: implicit on purpose
  /// int32 or int64, and a scalar.
  template <expression X, class K = kernels_for<X>>
  size_argument(const X& x) {  // NOLINT: implicit on purpose
    constexpr bool is_size = is_integer_expression<X> && is_scalar_expression<X>;
    if constexpr (typed_expression<X>)
      static_assert(takes<op::extents, got<X>> || is_size,
                    "a shape or an index that a run computes is made of integer scalars, as "
                    "size_of(x, axis<0>) is, and not of another tensor: use cast<std::int64_t>(x)");
    if constexpr (is_size) take(x);
  }

  std::int64_t number = 0;
  any_tensor tensor;  ///< empty: the number

 private:
  void take(const any_tensor& x);
};

/// Extents or indices of several axes: `{size_of(x, axis<0>), 16}`, or an integer vector of the
/// graph whose extent is known.
class size_list {
 public:
  size_list(std::initializer_list<size_argument> n);  // NOLINT: implicit on purpose
  explicit size_list(std::vector<size_argument> n) : all_(std::move(n)) {}
  template <expression X, class K = kernels_for<X>>
  size_list(const X& x) {  // NOLINT: implicit on purpose
    take(x);
  }

  int size() const { return static_cast<int>(all_.size()); }
  size_argument& operator[](int i) { return all_[static_cast<std::size_t>(i)]; }
  const size_argument& operator[](int i) const { return all_[static_cast<std::size_t>(i)]; }

 private:
  void take(const any_tensor& x);

  std::vector<size_argument> all_;
};

/// What is known of a list, and where the rest comes from.
struct run_extents {
  dims known;          ///< `dyn` where only a run knows
  any_tensor carrier;  ///< the value of op::extents; empty if all are known

  run_extents() = default;
  run_extents(const dims& all) : known(all) {}  // NOLINT: implicit on purpose
  run_extents(std::string_view of, std::string_view what, const size_list& n, dtype type,
              source_location w);
};
/// The extents `declared`, where `n` gives those that are `dyn`, or all of them. Throws
/// invalid_argument if it gives another number of them, or contradicts.
run_extents declared_extents(std::string_view of, const dims& declared, const size_list& n,
                             dtype type, source_location w);

template <class Shape>
inline constexpr bool is_known = Shape::value.is_static();

}  // namespace detail
}  // namespace deft
