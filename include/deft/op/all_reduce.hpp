// SPDX-License-Identifier: Apache-2.0
// deft/op/all_reduce.hpp: the sum or mean of tensors on several devices, on each of them.
#pragma once
#include <array>
#include <deft/op/base/shapes.hpp>
#include <span>
#include <vector>

namespace deft::op {
/// The sum or mean of the inputs after the first one, on the device of the first one.
struct all_reduce {
  static constexpr std::string_view name = "all_reduce";
  static constexpr int arity = 2;
  static constexpr int max_arity = -1;
  static constexpr op_role role = op_role::collective;
  bool mean = false;
  static constexpr auto fields = field_list(field{"mean", &all_reduce::mean});

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

namespace detail {
template <class First, class... Rest>
struct agreed : typed_shape<agreed<First, Rest...>> {
  static constexpr bool make(dims& out) {
    out = First::value;
    return (op::unify(out, Rest::value, out) && ...);
  }
};

std::vector<any_tensor> add_all_reduce(bool mean, std::span<const any_tensor> parts,
                                       source_location w);

template <class K, bool Mean, class X, class... Rest>
auto all_reduce(const X& x, const Rest&... rest) {
  if constexpr (typed_expression<X> && (typed_expression<Rest> && ...)) {
    constexpr bool one_dtype = (std::is_same_v<value_type_of<X>, value_type_of<Rest>> && ...);
    if constexpr (!one_dtype || !is_numeric_expression<X> || (Mean && !is_floating_expression<X>) ||
                  !agreed<shape_type_of<X>, shape_type_of<Rest>...>::possible) {
      static_assert(takes<op::all_reduce, got<X>, got<Rest>...>,
                    "[all_reduce] expects tensors of numbers of one dtype and shape, for a mean "
                    "floating ones, and got others");
      return std::vector<refused>();
    } else {
      using part = tensor_of<value_type_of<X>, agreed<shape_type_of<X>, shape_type_of<Rest>...>>;
      const any_tensor parts[] = {any_tensor(any_lower<K>(x, {})),
                                  any_tensor(any_lower<K>(rest, {}))...};
      const std::vector<any_tensor> all = add_all_reduce(Mean, parts, {});
      return [&]<std::size_t... Nth>(std::index_sequence<Nth...>) {
        return std::array<part, sizeof...(Nth)>{part(all[Nth].handle())...};
      }
      (std::index_sequence_for<X, Rest...>());
    }
  } else {
    const any_tensor parts[] = {any_tensor(any_lower<K>(x, {})),
                                any_tensor(any_lower<K>(rest, {}))...};
    return add_all_reduce(Mean, parts, {});
  }
}
template <class K, bool Mean, class X>
auto all_reduce_list(const std::vector<X>& list, source_location w) {
  std::vector<any_tensor> parts;
  for (const X& x : list) parts.emplace_back(any_lower<K>(x, w));
  if constexpr (typed_expression<X>) {
    std::vector<tensor_of<value_type_of<X>, shape_type_of<X>>> all;
    for (const any_tensor& t : add_all_reduce(Mean, parts, w)) all.emplace_back(t.handle());
    return all;
  } else
    return add_all_reduce(Mean, parts, w);
}
}  // namespace detail

/// The sum of tensors of one dtype and shape, one for each of them, on its device:
/// `auto [a, b] = all_reduce(on_gpu_0, on_gpu_1)`. A std::array where they have types, a
/// std::vector otherwise. They are added in the order given, whatever their devices: all results
/// have the same bits, in every run. Large ones whose shape is known to the plan are reduced in
/// slices, one on each device. The gradient of each is the sum of those of the results that are
/// used.
/// Different dtypes or shapes, or bool, are a compile error where the types show it, and throw
/// invalid_argument otherwise.
template <ext::expression X, ext::expression... Rest, class K = ext::kernels_for<X>>
auto all_reduce(const X& x, const Rest&... rest) {
  return detail::all_reduce<K, false>(x, rest...);
}
/// The same for a list of tensors or `any_tensor`s, as a std::vector. Throws invalid_argument if it
/// is empty.
/// @{
template <ext::expression X, class K = ext::kernels_for<X>>
auto all_reduce(const std::vector<X>& list, ext::source_location w = ext::here()) {
  return detail::all_reduce_list<K, false>(list, w);
}
inline std::vector<any_tensor> all_reduce(std::span<const any_tensor> list,
                                          ext::source_location w = ext::here()) {
  return detail::add_all_reduce(false, list, w);
}
/// @}

/// The mean of float or double tensors, otherwise as `all_reduce`.
template <ext::expression X, ext::expression... Rest, class K = ext::kernels_for<X>>
auto all_reduce_mean(const X& x, const Rest&... rest) {
  return detail::all_reduce<K, true>(x, rest...);
}
/// The same for a list of them, as a std::vector. Throws invalid_argument if it is empty.
/// @{
template <ext::expression X, class K = ext::kernels_for<X>>
auto all_reduce_mean(const std::vector<X>& list, ext::source_location w = ext::here()) {
  return detail::all_reduce_list<K, true>(list, w);
}
inline std::vector<any_tensor> all_reduce_mean(std::span<const any_tensor> list,
                                               ext::source_location w = ext::here()) {
  return detail::add_all_reduce(true, list, w);
}
/// @}

}  // namespace deft

#include <deft/op/div.hpp>
template <class N>
auto deft::op::all_reduce::grad(const N& n, any_tensor dz) {
  if (n.attr().mean) dz = dz / static_cast<double>(n.inputs() - 1);
  std::vector<any_tensor> all(n.inputs(), dz);
  all[0] = {};
  return all;
}
