// SPDX-License-Identifier: Apache-2.0
// deft/op/base/random.hpp: what random operations share: counter-based numbers, Philox 4x32-10
// of core/philox.hpp.
#pragma once
#include <deft/op/base/shapes.hpp>
#include <optional>

namespace deft::op {

/// Element i depends only on key, draw_counter(stream, draw) and i, so that the numbers are the
/// same on every task and device and with any number of threads.
struct random {
  static constexpr int arity = 0;
  static constexpr op_traits traits = op_traits::stateful;
  dims shape;
  dtype type = dtype::float32;
  std::uint64_t key = 0;
  bool every_step = true;  ///< new numbers in every step; false: always those of step 0

 protected:
  /// The shape and type rule; `parameters` must be finite in the dtype.
  tensor_type checked(std::string_view name, std::initializer_list<double> parameters) const;
};

}  // namespace deft::op

namespace deft {

struct random_options {
  /// Used with the graph's seed, in place of the operation's number in its graph.
  std::optional<std::uint64_t> seed;
};

namespace detail {
/// Hashes the graph's seed with the explicit seed, or with the operation's number.
std::uint64_t random_key(const random_options& o);

template <class T, class Shape, class Op>
tensor_of<T, Shape> random_tensor(Op o, const random_options& options, source_place w) {
  if constexpr (!std::is_floating_point_v<T>)
    static_assert(takes<Op, T>,
                  "[random] random tensors are float or double, and another dtype was asked for");
  if constexpr (!Shape::value.is_static())
    static_assert(takes<Op, Shape>,
                  "[random] a random tensor's shape has no dyn: random_normal_like(x) has the "
                  "extents of x in each run, and its kin do; extents may also be tensors");
  o.shape = Shape::value;
  o.type = dtype_of<T>;
  o.key = random_key(options);
  return tensor_of<T, Shape>(apply_any(o, {}, w).handle());
}
template <class Op>
any_tensor random_any(Op o, const dims& shape, dtype type, const random_options& options,
                      source_place w) {
  o.shape = shape;
  o.type = type;
  o.key = random_key(options);
  return apply_any(o, {}, w);
}
}  // namespace detail

}  // namespace deft
