// SPDX-License-Identifier: Apache-2.0
// deft/op/base/random.hpp: what random operations share: counter-based numbers, Philox 4x32-10
// of core/philox.hpp.
#pragma once
#include <deft/op/extents.hpp>
#include <optional>

namespace deft::op {

/// Element i depends only on key, draw_counter(stream, draw) and i, so that the numbers are the
/// same on every task and device and with any number of threads.
struct random {
  static constexpr int arity = 0;
  static constexpr int max_arity = 1;  ///< a tensor of that shape, or what says the `dyn` extents
  static constexpr op_traits traits = op_traits::stateful;
  dims shape;  ///< empty where a tensor has it
  dtype type = dtype::float32;
  std::uint64_t key = 0;
  bool every_step = true;  ///< new numbers in every step; false: always those of step 0

  /// A tensor that only has the shape gets none.
  template <class N>
  static auto grad(const N&, any_tensor) {
    return any_tensor();
  }

 protected:
  /// The shape and type rule; `parameters` must be finite in the dtype.
  tensor_type checked(std::string_view name, std::span<const tensor_type> in,
                      std::initializer_list<double> parameters) const;
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

template <class Op>
any_tensor random_any(Op o, const dims& shape, dtype type, const random_options& options,
                      source_location w) {
  o.shape = shape;
  o.type = type;
  o.key = random_key(options);
  return apply_any(o, {}, w);
}
template <class T, class Shape, class Op>
tensor_of<T, Shape> random_tensor(const Op& o, const random_options& options, source_location w) {
  if constexpr (!is_floating_type<T>)
    static_assert(takes<Op, T>,
                  "[random] random tensors are float or double, and another dtype was asked for");
  return tensor_of<T, Shape>(random_any(o, Shape::value, dtype_of<T>, options, w).handle());
}
/// Without the extents that only a run knows.
template <class Op, class Shape>
refused refuse_unsized() {
  static_assert(
      takes<Op, Shape>,
      "[random] a random tensor's shape has no dyn: random_normal_like(x) has the extents "
      "of x in each run, as random_uniform_like(x) has; or give them in braces, as in "
      "random_normal(shape<dyn, 3>, {size_of(x, axis<0>)})");
  return refused();
}
/// The extents that only a run knows are those of `n`.
template <class Op>
any_tensor random_any_sized(Op o, const dims& declared, const size_list& n, dtype type,
                            const random_options& options, source_location w) {
  const run_extents e = declared_extents(Op::name, declared, n, type, w);
  if (!e.carrier.valid()) return random_any(o, e.known, type, options, w);
  o.shape = e.known;
  o.type = type;
  o.key = random_key(options);
  const output in[] = {e.carrier.handle()};
  return apply_any(o, in, w);
}
template <class T, class Shape, class Op>
tensor_of<T, Shape> random_sized(const Op& o, const size_list& n, const random_options& options,
                                 source_location w) {
  if constexpr (!is_floating_type<T>)
    static_assert(takes<Op, T>,
                  "[random] random tensors are float or double, and another dtype was asked for");
  return tensor_of<T, Shape>(
      random_any_sized(o, Shape::value, n, dtype_of<T>, options, w).handle());
}
/// In the dtype and shape of `like`, which need not be known.
template <class Op>
any_tensor random_any_like(Op o, const any_tensor& like, const random_options& options,
                           source_location w) {
  if (like.shape().is_static()) return random_any(o, like.shape(), like.type(), options, w);
  if (!is_floating(like.type()))
    fail(errc::invalid_argument, "[", Op::name, "] is not defined for ", like.type());
  o.type = like.type();
  o.key = random_key(options);
  const output in[] = {like.handle()};
  return apply_any(o, in, w);
}
template <class X, class Op>
auto random_like(const Op& o, const X& like, const random_options& options, source_location w) {
  if constexpr (!is_floating_expression<X>) {
    static_assert(takes<Op, got<X>>,
                  "[random] random tensors are float or double, and the tensor that they are to "
                  "be like is not: use cast<float>(x)");
    return refused();
  } else if constexpr (typed_expression<X>)
    return tensor_of<value_type_of<X>, shape_type_of<X>>(
        random_any_like(o, any_tensor(like), options, w).handle());
  else
    return random_any_like(o, any_tensor(like), options, w);
}
}  // namespace detail

}  // namespace deft
