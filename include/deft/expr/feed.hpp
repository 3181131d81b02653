// SPDX-License-Identifier: Apache-2.0
// deft/expr/feed.hpp: `x = value`, a host value that stands for a tensor during one run.
#pragma once
#include <cstring>
#include <deft/core/feed_ref.hpp>
#include <deft/core/ndarray.hpp>
#include <deft/expr/any_tensor.hpp>
#include <iterator>
#include <string_view>
#include <vector>

namespace deft {

/// A tensor and the value that replaces it. Made by `x = value` or `feed(t, value)`. An lvalue's
/// elements are borrowed until run returns; an rvalue's are kept here. A shape known only at run
/// time is checked by the run, which knows its line.
class feed_value {
 public:
  /// @cond internal
  feed_value(ext::output target, ext::feed_ref borrowed)
      : target_(std::move(target)), value_(std::move(borrowed)) {}
  /// Given away if this is the only holder. Otherwise a result or a variable gets a copy, as the
  /// other holders may write through a pointer.
  feed_value(ext::output target, any_array&& value)
      : feed_value(std::move(target), ext::feed_ref::borrow(value)) {
    held_ = std::move(value).take_storage();
    if (held_.unique()) value_.keep = std::move(held_);
  }
  /// A scalar, kept inside.
  template <ext::plain_element T>
  feed_value(ext::output target, T v)
      : feed_value(std::move(target), {nullptr, {}, dtype_of<T>, {}}) {
    std::memcpy(scalar_, &v, sizeof v);
  }
  /// @endcond

  /// The tensor that is fed, as any_tensor::handle yields it.
  const ext::output& target() const { return ext::origin_of(target_); }
  /// Dtype of the value.
  dtype type() const { return value_.type; }
  /// Extents of the value, all of them known.
  const dims& shape() const { return value_.shape; }
  /// The first element of the value. Valid while this and, if it was an lvalue, the value live.
  const void* data() const { return value_.data ? value_.data : scalar_; }
  /// @cond internal
  /// Valid while this lives.
  ext::feed_ref value() const { return {data(), value_.shape, value_.type, value_.keep}; }
  /// @endcond
  /// Throws invalid_argument, with the line of the run if it is known, if dtype or shape do not
  /// fit.
  void verify(ext::source_location run = {}) const;

 private:
  ext::output target_;
  ext::feed_ref value_;  ///< without data where that is in scalar_
  ext::buffer held_;     ///< an rvalue's elements that others hold too
  alignas(8) unsigned char scalar_[8] = {};
};

namespace detail {
/// The elements of a list, as a vector: a view, or an array of its texts.
template <class V>
any_array array_of_list(const V& list) {
  const dims shape{static_cast<std::int64_t>(std::size(list))};
  if constexpr (text_range<V>)
    return any_array(shape, texts_of(list));
  else
    return any_array::view(dtype_of<std::iter_value_t<data_of<const V>>>, shape, std::data(list));
}
/// The same for a caller that keeps `v`.
template <element_range V>
feed_ref ref_of(V& v) {
  return {std::data(v),
          {static_cast<std::int64_t>(std::size(v))},
          dtype_of<std::iter_value_t<data_of<V>>>,
          {}};
}

template <class Tensor, class Value>
inline constexpr bool feeds_shape = may_equal(Tensor::value, Value::value);
}  // namespace detail

namespace ext {

/// A value on the host that can be fed: a scalar, a text, an ndarray, an any_array, or contiguous
/// elements for a tensor of rank 1.
template <class V>
concept host_value = scalar<V> || detail::is_ndarray<std::remove_cvref_t<V>> ||
    std::same_as<std::remove_cvref_t<V>, any_array> || detail::element_range<V> ||
    (!expression<V> && (detail::text<V> || detail::text_range<std::remove_cvref_t<V>>));

}  // namespace ext

namespace detail {
/// A scalar as dtype T. Throws invalid_argument, with the tensor's name, if T cannot represent it.
template <class T, class S>
T fed_scalar(std::string_view name, source_location w, S s) {
  if constexpr (!std::is_same_v<T, S>)
    if (!survives<T>(s)) refuse_literal(literal_of(s), dtype_of<T>, std::string(name), w);
  return static_cast<T>(s);
}
/// The same for a tensor, whose name is looked up only for the error.
template <class T, class S>
T fed_scalar(const output& target, S s) {
  if constexpr (!std::is_same_v<T, S>)
    if (!survives<T>(s))
      refuse_literal(literal_of(s), dtype_of<T>, name_of(*target.node), target.node->location());
  return static_cast<T>(s);
}
/// Borrows an lvalue, takes over an rvalue.
inline feed_value array_feed(const output& target, const any_array& value) {
  return {target, feed_ref::borrow(value)};
}
inline feed_value array_feed(const output& target, any_array&& value) {
  return {target, std::move(value)};
}
template <class V>
feed_value ndarray_feed(const output& target, V&& value) {
  if constexpr (std::is_lvalue_reference_v<V>)
    return array_feed(target, borrowed::from(value));
  else
    return array_feed(target, std::move(value).array());
}
}  // namespace detail

namespace ext {

/// The feed of `value` for a tensor of T and the extents Shape::value.
template <element T, class Shape, host_value V>
feed_value make_feed(const output& target, V&& value) {
  using U = std::remove_cvref_t<V>;
  if constexpr (detail::text<U>) {
    if constexpr (!std::is_same_v<T, std::string>) {
      static_assert(detail::takes<tensor_of<T, Shape>, U>,
                    "[feed] expects numbers, and got text: std::stof(s) reads a number of it");
    } else if constexpr (Shape::value.n != 0) {
      static_assert(detail::takes<tensor_of<T, Shape>, U>,
                    "[feed] a tensor expects an ndarray or a list of elements, and got a scalar");
    }
    return {target, any_array::scalar(std::string_view(value))};
  } else if constexpr (scalar<U>) {
    if constexpr (Shape::value.n != 0)
      static_assert(detail::takes<tensor_of<T, Shape>, U>,
                    "[feed] a tensor expects an ndarray or a list of elements, and got a scalar");
    else if constexpr (!detail::literal_fits<T, U>)
      static_assert(detail::takes<tensor_of<T, Shape>, U>,
                    "[feed] the value has another dtype than the tensor: use static_cast");
    if constexpr (plain_element<T>)
      return feed_value(target, detail::fed_scalar<T>(target, value));
    else
      return {target, any_array()};
  } else if constexpr (detail::is_ndarray<U>) {
    if constexpr (!std::is_same_v<T, typename U::value_type>)
      static_assert(
          detail::takes<tensor_of<T, Shape>, U>,
          "[feed] the value has another dtype than the tensor: declare the tensor with it, "
          "or convert the elements");
    else if constexpr (!detail::feeds_shape<Shape, typename U::shape_type>)
      static_assert(detail::takes<tensor_of<T, Shape>, U>,
                    "[feed] the value has another shape than the tensor");
    return detail::ndarray_feed(target, std::forward<V>(value));
  } else if constexpr (std::same_as<U, any_array>) {
    return detail::array_feed(target, std::forward<V>(value));
  } else {
    constexpr bool texts = detail::text_range<U>;
    if constexpr (texts != std::is_same_v<T, std::string> ||
                  (!texts && !std::is_same_v<T, std::iter_value_t<detail::data_of<U>>>))
      static_assert(
          detail::takes<tensor_of<T, Shape>, U>,
          "[feed] the value has another dtype than the tensor: declare the tensor with it, "
          "or convert the elements");
    else if constexpr (Shape::value.n != 1)
      static_assert(detail::takes<tensor_of<T, Shape>, U>,
                    "[feed] a list of elements is fed to a tensor that is not a vector: use "
                    "ndarray<T, E...>::view(v.data(), extents...)");
    if constexpr (texts)
      return {target, detail::array_of_list(value)};
    else if constexpr (std::is_lvalue_reference_v<V>)
      return {target, detail::ref_of(value)};
    else
      return {target, detail::array_of_list(value).clone()};
  }
}

}  // namespace ext

namespace detail {
/// Whether V has numbers of a type that no tensor has.
template <class V>
inline constexpr bool has_other_numbers = false;
template <class V>
requires is_number_type<std::iter_value_t<data_of<const V>>>
inline constexpr bool has_other_numbers<V> = true;

/// Says why a V is not fed to a Tensor.
template <class Tensor, class V>
feed_value refuse_feed() {
  if constexpr (is_bool_vector<V>)
    static_assert(takes<Tensor, V>,
                  "[feed] expects elements in memory, and std::vector<bool> has bits: use "
                  "ndarray<bool, dyn>, or std::array<bool, N>");
  else if constexpr (std::is_pointer_v<V>)
    static_assert(takes<Tensor, V>,
                  "[feed] expects a value that knows its extents, and got a pointer: view(p, rows, "
                  "784) is an ndarray of the elements that it points to");
  else if constexpr (has_other_numbers<V>)
    static_assert(takes<Tensor, V>, "[feed] element types are " DEFT_ELEMENT_TYPES
                                    ": for long long use std::int64_t, for other integers "
                                    "std::int32_t");
  else
    static_assert(takes<Tensor, V>,
                  "[feed] expects a number, an ndarray, an any_array, or a vector, array or span "
                  "of an element type, and got another type");
  return feed_value({}, any_array());
}

/// `list` as an array of `type`, of the extents that `declared` has, one of which may be dyn.
/// Throws invalid_argument with the tensor's name and place if their number or one of them does not
/// fit.
any_array list_values(std::string_view name, source_location w, dtype type, const dims& declared,
                      std::span<const literal> list);
/// The same of strings.
any_array string_list_values(std::string_view name, source_location w, const dims& declared,
                             std::span<const std::string_view> list);

/// A braced list as a value to feed: the elements in row-major order, at least one.
template <class T, std::int64_t... E>
struct element_list;
template <std::int64_t... E>
struct element_list<std::string, E...> {
  template <text... V>
  requires(sizeof...(V) > 0) element_list(const V&... v)  // NOLINT: implicit
      : written_{std::string_view(v)...} {
    constexpr dims declared = shape_t<E...>::value;
    static_assert((0 + ... + int{E == dyn}) <= 1,
                  "a list of elements can tell one dyn extent only");
    if constexpr (declared.is_static() && declared.elements() != sizeof...(V))
      static_assert(takes<tensor<std::string, E...>, V...>,
                    "the list has another number of elements than the tensor");
  }
  /// As of lists of numbers; the texts are copied.
  /// @{
  ndarray<std::string, E...> values_for(const output& target) const {
    return values_for(name_of(*target.node), target.node->location());
  }
  ndarray<std::string, E...> values_for(std::string_view name, source_location w) const {
    return string_list_values(name, w, shape_t<E...>::value, written_);
  }
  /// @}

 private:
  std::vector<std::string_view> written_;
};
template <class T, std::int64_t... E>
struct element_list {
  template <scalar... V>
  requires(sizeof...(V) > 0) element_list(V... v)
      : written_{literal_of(v)...} {  // NOLINT: implicit
    constexpr dims declared = shape_t<E...>::value;
    static_assert((0 + ... + int{E == dyn}) <= 1,
                  "a list of elements can tell one dyn extent only");
    if constexpr (!(literal_fits<T, V> && ...))
      static_assert(takes<tensor<T, E...>, V...>,
                    "the list has another dtype than the tensor: use static_cast");
    else if constexpr (declared.is_static() && declared.elements() != sizeof...(V))
      static_assert(takes<tensor<T, E...>, V...>,
                    "the list has another number of elements than the tensor");
  }
  /// The elements for that tensor. Throws invalid_argument that names it if their number or one of
  /// them does not fit.
  ndarray<T, E...> values_for(const output& target) const {
    return values_for(name_of(*target.node), target.node->location());
  }
  /// The same for one of that name, which is made at `w`.
  ndarray<T, E...> values_for(std::string_view name, source_location w) const {
    return ndarray<T, E...>(list_values(name, w, dtype_of<T>, shape_t<E...>::value, written_));
  }

 private:
  std::vector<literal> written_;
};

/// Braces within braces, the rows of a matrix or of more, as an array for a tensor of that shape.
template <element T, class Shape, std::int64_t... N>
auto nested_list(const T* elements) {
  using got = ndarray<T, N...>;
  if constexpr (!may_equal(Shape::value, got::shape_type::value)) {
    static_assert(takes<tensor_of<T, Shape>, got>, "the list has another shape than the tensor");
    return any_array();
  } else if constexpr (!plain_element<T>) {
    return got(any_array(
        got::shape_type::value,
        std::vector<std::string_view>(elements, elements + got::shape_type::value.elements())));
  } else {
    got list;
    std::copy(elements, elements + list.size(), list.begin());
    return list;
  }
}
/// The same as a value to feed.
template <element T, class Shape, std::int64_t... N>
feed_value make_nested_feed(const output& target, const T* elements) {
  return make_feed<T, Shape>(target, nested_list<T, Shape, N...>(elements));
}
/// What is made of rows of different lengths, and refuses them.
template <class Tensor>
struct uneven_rows {
  template <std::size_t... N>
  requires(sizeof...(N) > 1 && std::min({N...}) != std::max({N...}))
      uneven_rows(const value_type_of<Tensor> (&... rows)[N]) {  // NOLINT: implicit
    static_assert(takes<Tensor, decltype(rows)...>, "the rows of the list have different lengths");
  }
};

/// The forms of `x = value` that tensors, placeholders and variables have: a base of tensor<T, E…>,
/// whose other assignments are its own. `using feed_forms<T, E...>::operator=` adds them.
template <class T, std::int64_t... E>
class feed_forms : public typed_base {
  using fed = tensor<T, E...>;

 public:
  /// @cond internal
  void operator=(const feed_forms&) requires std::is_void_v<T>;  // no form is a copy of the base
  /// @endcond

  /// A feed, which stands for the tensor in one run: `s.run(loss, x = value)`. `value` is a number
  /// for a scalar, an ndarray, an any_array, or for a vector any contiguous elements. Elements of
  /// an lvalue are borrowed until the run returns. Throws failed_precondition for an empty tensor,
  /// invalid_argument for a number that the dtype cannot represent; what only a run knows of dtype
  /// and extents is checked by the run.
  template <host_value V>
  [[nodiscard]] feed_value operator=(V&& value) const {
    return make_feed<T, shape_t<E...>>(target(), std::forward<V>(value));
  }
  /// @cond
  template <scalar V>
  [[nodiscard]] feed_value operator=(V&& value) {  // before the constructor that refuses numbers
    return std::as_const(*this) = std::forward<V>(value);
  }
  /// @endcond
  /// `x = {0.5f}`: a number in braces, for a scalar.
  template <scalar V>
  requires(sizeof...(E) == 0 && plain_element<T>) [[nodiscard]] feed_value operator=(
      const V (&number)[1]) {
    return std::as_const(*this) = number[0];
  }
  /// `x = {1, 2, 3}`: the elements in row-major order. Throws invalid_argument if their number or
  /// one of them does not fit.
  [[nodiscard]] feed_value operator=(element_list<T, E...> list) const {
    return make_feed<T, shape_t<E...>>(target(), list.values_for(target()));
  }
  /// `x = {{1, 2}, {3, 4}}`: a matrix, row by row.
  template <std::size_t N, std::size_t M>
  [[nodiscard]] feed_value operator=(const T (&rows)[N][M]) const {
    return make_nested_feed<T, shape_t<E...>, N, M>(target(), rows[0]);
  }
  /// `x = {{{1, 2}, {3, 4}}}`: a tensor of rank 3, row by row.
  template <std::size_t N, std::size_t M, std::size_t L>
  [[nodiscard]] feed_value operator=(const T (&rows)[N][M][L]) const {
    return make_nested_feed<T, shape_t<E...>, N, M, L>(target(), rows[0][0]);
  }
  /// @cond refused
  feed_value operator=(const uneven_rows<fed>&) const;
  // Of two parameters, as a template of one in a derived class would hide it there.
  template <class Tensor = fed, class V>
  requires(!host_value<V> && !expression<V>) feed_value operator=(const V&) const {
    return refuse_feed<Tensor, V>();
  }
  /// @endcond

 protected:
  feed_forms() = default;
  feed_forms(const feed_forms&) = default;

 private:
  const output& target() const { return static_cast<const fed&>(*this).handle(); }
};

/// Throws invalid_argument: a literal of another dtype is fed to `target`.
[[noreturn]] void refuse_literal_feed(const output& target);

/// The feed of a tensor with a dtype and shape known only at run time; a scalar takes its dtype.
template <host_value V>
feed_value make_any_feed(const output& target, V&& value) {
  using U = std::remove_cvref_t<V>;
  if constexpr (text<U>) {
    return make_feed<std::string, shape_t<>>(target, value);
  } else if constexpr (scalar<U>) {
    const dtype t = target.type().type;
    if (!plain_dtypes.has(t)) refuse_literal_feed(target);
    any_array a(t, {});
    visit_dtype(t, [&]<class T>() {
      if constexpr (literal_fits<T, U>)
        *a.mutable_data<T>() = fed_scalar<T>(target, value);
      else
        refuse_literal_feed(target);
    });
    return {target, std::move(a)};
  } else if constexpr (std::same_as<U, any_array>) {
    return array_feed(target, std::forward<V>(value));
  } else if constexpr (is_ndarray<U>) {
    return ndarray_feed(target, std::forward<V>(value));
  } else {
    using T = std::conditional_t<text_range<U>, std::string, std::iter_value_t<data_of<U>>>;
    return make_feed<T, shape_t<dyn>>(target, std::forward<V>(value));
  }
}
}  // namespace detail

}  // namespace deft
