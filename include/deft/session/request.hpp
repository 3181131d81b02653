// SPDX-License-Identifier: Apache-2.0
// deft/session/request.hpp: the arguments of run, and the values that it returns.
#pragma once
#include <array>
#include <concepts>
#include <deft/expr/tensor.hpp>
#include <deft/op/variable.hpp>
#include <deft/session/engine.hpp>
#include <span>
#include <tuple>
#include <vector>

namespace deft {

class session;

namespace detail {

/// How a fetch of type `X` is lowered, and how its value is read; specialised for each kind.
template <class X>
struct fetch_of;

template <class X>
requires std::derived_from<X, operation>
struct fetch_of<X> {
  static output handle(const X& x) { return {x.handle(), run_only}; }
  static std::tuple<> take(step_results&, std::size_t) { return {}; }
};

/// Moves value `i` out of `r`.
any_array take_result(step_results& r, std::size_t i);
/// The first element of value `i`, which stays in `r`: scalars are copied without an allocation.
const void* peek_result(step_results& r, std::size_t i);

template <class T, class Shape, class Index = std::make_index_sequence<std::size_t(Shape::value.n)>>
struct ndarray_from;
template <class T, class Shape, std::size_t... Index>
struct ndarray_from<T, Shape, std::index_sequence<Index...>> {
  using type = ndarray<T, Shape::value.e[Index]...>;
};

template <typed_expression X>
struct fetch_of<X> {
  using T = value_type_of<X>;
  static output handle(const X& x) { return lower<kernels_for<X>>(x, {}); }
  static auto take(step_results& r, std::size_t i) {
    if constexpr (shape_type_of<X>::value.n == 0 && std::is_same_v<T, std::string>)
      return std::tuple<T>(take_result(r, i).template item<T>());
    else if constexpr (shape_type_of<X>::value.n == 0)
      return std::tuple<T>(*static_cast<const T*>(peek_result(r, i)));
    else
      return std::tuple(typename ndarray_from<T, shape_type_of<X>>::type(take_result(r, i)));
  }
};

template <std::derived_from<any_tensor> X>
struct fetch_of<X> {
  static output handle(const any_tensor& x) { return x.handle(); }
  static std::tuple<any_array> take(step_results& r, std::size_t i) { return {take_result(r, i)}; }
};

template <>
struct fetch_of<any_variable> {
  static output handle(const any_variable& x) { return x.operand(); }
  static std::tuple<any_array> take(step_results& r, std::size_t i) { return {take_result(r, i)}; }
};

/// A node that a graph found by its name.
template <>
struct fetch_of<node_ref> {
  static output handle(const node_ref& x) { return value_of(x, {}); }
  static std::tuple<any_array> take(step_results& r, std::size_t i) { return {take_result(r, i)}; }
};

/// Several fetches or feeds of one type, whose number is known only at run time.
template <class X>
inline constexpr bool is_list = false;
template <class X>
inline constexpr bool is_list<std::vector<X>> = true;
template <class X>
inline constexpr bool is_tuple = false;
template <class... X>
inline constexpr bool is_tuple<std::tuple<X...>> = true;
template <class X>
struct kind_of {
  using type = X;
};
template <class X>
struct kind_of<std::vector<X>> {
  using type = X;
};
template <class X>
inline constexpr bool feeds_something = std::same_as<typename kind_of<X>::type, feed_value>;

template <class X>
concept fetch =
    expression<typename kind_of<X>::type> || std::same_as<typename kind_of<X>::type, node_ref>;
template <class... X>
inline constexpr bool can_be_run = ((fetch<X> || feeds_something<X>)&&...);
/// An argument of run other than its options.
template <class X>
concept run_argument = !std::same_as<X, run_options>;

/// What Python would write: `{{x, v}}`, and `{x, {1, 2, 3}}`.
struct feed_dictionary {
  template <expression X, class V>
  feed_dictionary(const X&, const V&);
  template <expression X, class V>
  feed_dictionary(const X&, std::initializer_list<V>);
  template <expression X, class V>
  feed_dictionary(const X&, std::initializer_list<std::initializer_list<V>>);
  template <std::same_as<feed_value> F>
  feed_dictionary(const F&);
};

/// What a run yields that fetches operations alone: nothing.
struct no_value {
  template <class T>
  operator T() const {
    static_assert(takes<T, operation>,
                  "[run] an operation yields no value: fetch w.assign_add(x).value(), or a tensor "
                  "next to the operation");
    return {};
  }
};

/// One value as itself, several as a tuple.
template <class... V>
auto unpack(std::tuple<V...> values) {
  if constexpr (sizeof...(V) == 1)
    return std::get<0>(std::move(values));
  else if constexpr (sizeof...(V) > 1)
    return values;
  else
    return no_value();
}

/// A list of `X`: a fixed array of `N` elements, or a vector where an argument is a container.
template <class X, std::size_t N, bool Grows>
class request_list {
 public:
  void add(X x) {
    if constexpr (Grows)
      all_.push_back(std::move(x));
    else
      all_[size_++] = std::move(x);
  }
  std::span<const X> get() const {
    if constexpr (Grows)
      return all_;
    else
      return {all_.data(), size_};
  }

 private:
  std::conditional_t<Grows, std::vector<X>, std::array<X, N + 1>> all_{};
  std::size_t size_ = 0;
};

/// The number of fetches in each container among the arguments.
template <class... X>
using list_lengths =
    std::array<std::size_t, (std::size_t{is_list<X> && !feeds_something<X>} + ... + 0)>;

/// Throws failed_precondition because argument `argument` (or its element `element`, if that is not
/// 0) is a tensor or operation without a node. Both count from 1.
[[noreturn]] void refuse_empty_fetch(std::string_view function, std::size_t argument,
                                     std::size_t element, source_location w);

/// The fetches and feeds among the arguments of run, in order.
template <class... X>
struct request {
  static constexpr std::size_t feeds = (std::size_t{feeds_something<X>} + ... + 0);
  static constexpr std::size_t fetches = sizeof...(X) - feeds;
  static constexpr bool grows = (is_list<X> || ...);
  request_list<output, fetches, grows> fetched;
  request_list<output, feeds, grows> targets;
  request_list<feed_ref, feeds, grows> fed;
  list_lengths<X...> lengths{};
  source_location location;  ///< of the run

  explicit request(source_location w, const X&... x) : location(w) {
    [[maybe_unused]] std::size_t list = 0;
    std::size_t argument = 0;
    auto add = [&]<class V>(const V& v) {
      ++argument;
      if constexpr (is_list<V>) {
        std::size_t element = 0;
        for (const auto& one : v) this->add_one(one, argument, ++element);
        if constexpr (!feeds_something<V>) this->lengths[list++] = v.size();
      } else
        this->add_one(v, argument, 0);
    };
    (add(x), ...);
  }

  template <class... Y>
  static auto take(step_results& r, const list_lengths<Y...>& lengths) {
    std::size_t i = 0;
    [[maybe_unused]] auto length = lengths.begin();
    auto one = [&]<class V>() {
      if constexpr (feeds_something<V>)
        return std::tuple<>();
      else if constexpr (is_list<V>)
        return take_list<typename V::value_type>(r, i, *length++);
      else
        return fetch_of<V>::take(r, i++);
    };
    // A braced list is evaluated from left to right.
    std::tuple<decltype(one.template operator()<Y>())...> parts{one.template operator()<Y>()...};
    return std::apply([](auto&&... p) { return std::tuple_cat(std::move(p)...); },
                      std::move(parts));
  }

 private:
  template <class V>
  void add_one(const V& v, std::size_t argument, std::size_t element) {
    if constexpr (std::same_as<V, feed_value>)
      v.verify(location), targets.add(v.target()), fed.add(v.value());
    else {
      if constexpr (requires { v.valid(); })
        if (!v.valid()) refuse_empty_fetch("run", argument, element, location);
      fetched.add(fetch_of<V>::handle(v));
    }
  }
  template <class V>
  static auto take_list(step_results& r, std::size_t& i, std::size_t n) {
    if constexpr (std::derived_from<V, operation>) {
      i += n;
      return std::tuple<>();
    } else {
      std::vector<std::tuple_element_t<0, decltype(fetch_of<V>::take(r, i))>> all;
      all.reserve(n);
      for (; n > 0; --n) all.push_back(std::get<0>(fetch_of<V>::take(r, i++)));
      return std::tuple(std::move(all));
    }
  }
};

/// Splits the arguments of the run at `w` into fetches and feeds for `step`, and gives each fetch
/// its type.
template <class Step, class... X>
auto run_fetches(Step&& step, source_location w, const X&... x) {
  if constexpr ((std::is_function_v<X> || ...)) {
    static_assert(takes<session, X...>,
                  "[run] expects what a function returns: call it, as in s.run(initialize_all())");
    return refused();
  } else if constexpr ((is_tuple<X> || ...)) {
    static_assert(takes<session, X...>,
                  "[run] expects the elements of a tuple one by one, as of auto [dw, db] = "
                  "gradients(loss, w, b)");
    return refused();
  } else if constexpr (!can_be_run<X...>) {
    static_assert(takes<session, X...>,
                  "[run] expects tensors, expressions, operations and feeds, and got another type");
    return refused();
  } else if constexpr (request<X...>::fetches == 0) {
    static_assert(takes<session, X...>, "[run] expects something to fetch, and got feeds alone");
    return refused();
  } else {
    const request<X...> r(w, x...);
    step_results results = step(r.fetched.get(), r.targets.get(), r.fed.get());
    return unpack(request<X...>::template take<X...>(results, r.lengths));
  }
}

/// Fetches in braces, as TensorFlow takes them in brackets.
template <std::size_t N, class... X>
auto refuse_listed() {
  static_assert(takes<session, X...>,
                "[run] expects fetches one by one, and got several in braces: auto [a, b] = "
                "s.run(x, y, k = 1); a std::vector of tensors is one, too");
  if constexpr (N > 1)
    return std::array<refused, N>();
  else
    return refused();
}

/// The forms of run that a kind of session has, which computes
/// `run_request(fetches, targets, feeds, options, place)`.
template <class Self>
class run_forms {
 public:
  /// Computes the fetches among `x`, given the feeds among them (`placeholder = value`), in any
  /// order. Returns the value of a single fetch, a tuple for several in the order written, and
  /// nothing for operations. The value is an `ndarray` of the fetch's dtype and shape, one element
  /// for a scalar, and an any_array for an any_tensor. A std::vector of fetches returns a vector of
  /// their values; a std::vector of feed_value feeds all of its elements.
  /// Throws failed_precondition for an empty tensor, an uninitialized variable or a closed session;
  /// invalid_argument for feeds whose shape does not fit, a tensor that is fed twice, and fetches
  /// from several graphs; unavailable if a task is lost or cannot be reached; deadline_exceeded
  /// after the timeout; cancelled if the run was cancelled or the session closed meanwhile; and
  /// whatever the operations throw. An error that is not that of a node has the line of the run.
  template <class... X>
  auto run(const X&... x) {
    return run_at({}, run_options{}, x...);
  }
  /// The same with options for this run.
  template <class... X>
  auto run(const run_options& options, const X&... x) {
    return run_at({}, options, x...);
  }
  // After a pack no default argument knows the line, so there is a function for each number of
  // arguments.
  template <detail::run_argument A>
  auto run(const A& a, source_location w = here()) {
    return run_at(w, run_options{}, a);
  }
  template <detail::run_argument A, class B>
  auto run(const A& a, const B& b, source_location w = here()) {
    return run_at(w, run_options{}, a, b);
  }
  template <detail::run_argument A, class B, class C>
  auto run(const A& a, const B& b, const C& c, source_location w = here()) {
    return run_at(w, run_options{}, a, b, c);
  }
  template <detail::run_argument A, class B, class C, class D>
  auto run(const A& a, const B& b, const C& c, const D& d, source_location w = here()) {
    return run_at(w, run_options{}, a, b, c, d);
  }
  template <detail::run_argument A, class B, class C, class D, class E>
  auto run(const A& a, const B& b, const C& c, const D& d, const E& e, source_location w = here()) {
    return run_at(w, run_options{}, a, b, c, d, e);
  }
  template <std::size_t N, class... X>
  auto run(const listed (&)[N], const X&...) {
    return refuse_listed<N, X...>();
  }
  template <std::size_t N>
  auto run(const listed (&)[N], std::initializer_list<feed_dictionary>) {
    return refuse_listed<N, feed_dictionary>();
  }
  template <std::size_t N, class... X>
  auto run(const run_options&, const listed (&)[N], const X&...) {
    return refuse_listed<N, X...>();
  }
  template <detail::run_argument A>
  refused run(const A&, std::initializer_list<feed_dictionary>) {
    static_assert(takes<session, A, feed_dictionary>,
                  "[run] expects each feed as an argument, as in s.run(y, x = value) or "
                  "s.run(y, x = {1, 2, 3}), and got braces around it");
    return {};
  }
  template <detail::run_argument A, class B>
  refused run(const A& a, const B&, std::initializer_list<feed_dictionary> feeds) {
    return run(a, feeds);
  }
  template <detail::run_argument A>
  refused run(const A& a, const feed_dictionary&) {
    return run(a, std::initializer_list<feed_dictionary>());
  }
  template <detail::run_argument A>
  refused run(const A& a, const feed_dictionary&, const feed_dictionary&) {
    return run(a, std::initializer_list<feed_dictionary>());
  }
  template <detail::run_argument A, class B>
  refused run(const A& a, const B&, const feed_dictionary&) {
    return run(a, std::initializer_list<feed_dictionary>());
  }
  template <detail::run_argument A, class B>
  refused run(const A& a, const B&, const feed_dictionary&, const feed_dictionary&) {
    return run(a, std::initializer_list<feed_dictionary>());
  }
  template <class A>
  auto run(const run_options& options, const A& a, source_location w = here()) {
    return run_at(w, options, a);
  }
  template <class A, class B>
  auto run(const run_options& options, const A& a, const B& b, source_location w = here()) {
    return run_at(w, options, a, b);
  }
  template <class A, class B, class C>
  auto run(const run_options& options, const A& a, const B& b, const C& c,
           source_location w = here()) {
    return run_at(w, options, a, b, c);
  }

 protected:
  run_forms() = default;

 private:
  template <class... X>
  auto run_at(source_location w, const run_options& options, const X&... x) {
    return run_fetches(
        [&](auto fetches, auto targets, auto feeds) {
          return static_cast<Self&>(*this).run_request(fetches, targets, feeds, options, w);
        },
        w, x...);
  }
};

}  // namespace detail

}  // namespace deft
