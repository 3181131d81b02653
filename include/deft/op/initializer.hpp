// SPDX-License-Identifier: Apache-2.0
// deft/op/initializer.hpp: first values of variables.
#pragma once
#include <deft/op/constant.hpp>
#include <functional>

namespace deft {

namespace ext {

/// What an initializer is to make.
struct initial_request {
  dtype type = dtype::none;
  dims shape;
  std::uint64_t key = 0;  ///< for random values: from the variable's name and the graph's seed
  source_location location;
};

}  // namespace ext

/// Builds the first value of a variable: `zeros()`, `ones()`, `truncated_normal(s)`,
/// `random_normal(mean, s)`, `random_uniform(low, high)`, a value, an expression, or a function of
/// the program. Random values depend only on the variable's name and the graph's seed, not on the
/// order in which variables are made nor on the step that initializes them.
class initializer {
 public:
  /// Makes a value of the dtype and shape that are asked for; a variable refuses any other.
  using function = std::function<any_tensor(const ext::initial_request&)>;

  /// By a function of the program, which is called when a variable is written:
  ///
  ///     initializer by_rows([](const ext::initial_request& r) {
  ///       return truncated_normal(1 / std::sqrt(static_cast<double>(r.shape[0])))(r);
  ///     });
  explicit initializer(function f) : make_(std::move(f)) {}
  /// The value of x; a scalar fills the variable. Variables in x stand for their first values.
  template <ext::expression X, class K = ext::kernels_for<X>>
  requires(!std::derived_from<X, operation>) initializer(const X& x)  // NOLINT: implicit on purpose
      : initializer(of(any_tensor(x))) {}
  /// Fills the variable.
  template <class S>
  requires ext::scalar<S> initializer(S v)  // NOLINT: implicit on purpose
      : initializer(filling(detail::literal_of(v))) {}
  /// The elements of an array, which is copied if others share it; one of rank 0 fills the
  /// variable.
  /// @{
  template <ext::element T, std::int64_t... E>
  initializer(ndarray<T, E...> a)  // NOLINT: implicit on purpose
      : initializer(std::move(a).array()) {}
  initializer(any_array a) : initializer(of(std::move(a))) {}  // NOLINT: implicit on purpose
  /// @}
  /// The elements of a variable of rank 1.
  template <class R>
  requires(detail::element_range<const R> || detail::text_range<R>)
      initializer(const R& elements)  // NOLINT: implicit on purpose
      : initializer(detail::array_of_list(elements).clone()) {}
  /// Fills a variable of strings.
  template <detail::text S>
  initializer(const S& v)  // NOLINT: implicit on purpose
      : initializer(any_array::scalar(std::string_view(v))) {}
  /// @cond copies
  initializer(const initializer& o);
  initializer(initializer&& o) noexcept;
  initializer& operator=(initializer o) noexcept;
  ~initializer();
  /// @endcond

  /// The value that it makes for a variable, for an initializer that calls another, as above.
  /// Throws invalid_argument if it makes no value of that dtype or shape, or if its parameters are
  /// bad.
  any_tensor operator()(const ext::initial_request& r) const { return make_(r); }

 private:
  static initializer of(any_tensor x);
  static initializer of(any_array a);
  static initializer filling(const detail::literal& v);

  function make_;
};

namespace ext {

/// What a variable can be made with.
template <class X>
concept initializes =
    (expression<X> && !std::derived_from<X, operation>) || scalar<X> || detail::is_ndarray<X> ||
    std::same_as<X, any_array> || detail::element_range<const X> || detail::text<X> ||
    detail::text_range<X> || std::same_as<X, initializer>;

}  // namespace ext

namespace detail {
/// For a variable that is made at `w`, the place of what an expression is made of.
template <initializes X>
initializer initializer_at(const X& x, source_location w) {
  const location_scope on_behalf(w);
  return initializer(x);
}
inline const initializer& initializer_at(const initializer& made, source_location) { return made; }
}  // namespace detail

/// Initializers take dtype and shape from the variable: `variable<float, 10> b("b", zeros())`.
/// All elements 0, or false.
initializer zeros();
/// All elements 1, or true.
initializer ones();
/// Uniform random values in [low, high). The random initializers take the parameters of the
/// operations of the same names, for float and double variables; the variable throws
/// invalid_argument for other dtypes and for bad parameters.
initializer random_uniform(double low, double high);
/// Normally distributed.
initializer random_normal(double mean, double stddev);
/// Normally distributed with mean 0; values beyond two standard deviations are drawn again.
initializer truncated_normal(double stddev);
/// @cond refused
template <ext::scalar Mean, ext::scalar Deviation>
initializer truncated_normal(Mean, Deviation s) {
  static_assert(detail::takes<initializer, Mean, Deviation>,
                "[truncated_normal] expects a standard deviation alone, as its mean is 0, and got "
                "two numbers: truncated_normal(0.1), or random_normal(mean, 0.1)");
  return truncated_normal(static_cast<double>(s));
}
/// @endcond

}  // namespace deft
