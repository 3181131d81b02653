// SPDX-License-Identifier: Apache-2.0
// deft/session/prepared.hpp: steps that are planned once and called often.
#pragma once
#include <deft/session/session.hpp>

namespace deft {

namespace detail {

/// The value of a tensor of a prepared step where one of them is a braced list, which templates do
/// not deduce.
template <class X>
struct braced_value {
  braced_value() = delete;
};
template <typed_expression X>
struct braced_value<X> {
  using T = value_type_of<X>;
  static constexpr int rank = shape_type_of<X>::value.n;

  /// The elements in row-major order.
  template <text... V>
  requires(sizeof...(V) > 0 && rank > 0 && std::is_same_v<T, std::string>)
      braced_value(const V&... elements)  // NOLINT: implicit on purpose
      : texts_{std::string_view(elements)...} {}
  template <scalar... V>
  requires(sizeof...(V) > 0) braced_value(V... elements)  // NOLINT: implicit on purpose
      : list_{literal_of(elements)...} {
    static_assert((literal_fits<T, V> && ...),
                  "[prepare] the list has another dtype than the tensor: use static_cast");
  }
  /// Row by row.
  template <std::size_t... N>
  requires(sizeof...(N) > 0 && rank == 2 && std::is_same_v<T, std::string>)
      braced_value(const text_item (&... rows)[N])  // NOLINT: likewise
      : array_(ndarray<T, dyn, dyn>(rows...)) {}
  template <std::size_t... N>
  requires(sizeof...(N) > 0 && rank == 2 && plain_element<T>)
      braced_value(const T (&... rows)[N])  // NOLINT: likewise
      : array_(ndarray<T, dyn, dyn>(rows...)) {}
  template <host_value V>
  requires(!scalar<V> && !(text<V> && rank > 0)) braced_value(V&& value)  // NOLINT: likewise
      : array_(make_any_feed({}, value).value().array()) {}

  any_array value_for(const output& target) && {
    if (array_.valid()) return std::move(array_);
    if constexpr (std::is_same_v<T, std::string>)
      return string_list_values(name_of(*target.node), target.node->location(),
                                shape_type_of<X>::value, texts_);
    else
      return list_values(name_of(*target.node), target.node->location(), dtype_of<T>,
                         shape_type_of<X>::value, list_);
  }

 private:
  std::vector<literal> list_;
  std::vector<std::string_view> texts_;
  any_array array_;
};

/// Calls of a prepared step with values of which some are braced lists.
template <class Step, class Feeds>
struct braced_calls {
  void operator()(const braced_calls&) const = delete;
};
template <class Step, class... X>
requires(sizeof...(X) > 0) struct braced_calls<Step, feed_list<X...>> {
  auto operator()(braced_value<X>... values) const {
    return (*this)(run_options{}, std::move(values)...);
  }
  auto operator()(const run_options& options, braced_value<X>... values) const {
    return static_cast<const Step&>(*this).run_braced(options, std::move(values)...);
  }
};

/// Throws invalid_argument: a tensor of a prepared step is not fed.
[[noreturn]] void refuse_unfed(const output& target);

}  // namespace detail

/// What session::prepare returns: `auto step = s.prepare(train, loss, feeds(x, label))`, then
/// `float l = step(images, labels)`. Thread-safe. Must not outlive its session.
template <class Feeds, class... Fetches>
class prepared_step : public detail::braced_calls<prepared_step<Feeds, Fetches...>, Feeds> {
  using braced = detail::braced_calls<prepared_step, Feeds>;
  static constexpr std::size_t fed = std::tuple_size_v<decltype(Feeds::targets)>;
  template <class... V>
  static constexpr bool are_feeds = sizeof...(V) > 0 && (std::same_as<V, feed_value> && ...);
  template <class... V>
  static constexpr bool has_options = (std::same_as<V, run_options> || ...);

 public:
  /// @cond internal
  prepared_step(std::shared_ptr<ext::ready_plan> plan, Feeds feeds,
                const detail::list_lengths<Fetches...>& lengths)
      : plan_(std::move(plan)), feeds_(std::move(feeds)), lengths_(lengths) {}
  /// @endcond

  using braced::operator();
  /// Runs the step. `values` are those of the tensors in `feeds(…)`, in that order: scalars,
  /// ndarrays, for a vector anything contiguous, or lists of elements: `step({1, 2}, labels)`.
  /// Returns and throws as session::run does.
  template <ext::host_value... V>
  auto operator()(V&&... values) const {
    return (*this)(run_options{}, std::forward<V>(values)...);
  }
  /// The same with options for this run.
  template <ext::host_value... V>
  auto operator()(const run_options& options, V&&... values) const {
    constexpr bool complete = sizeof...(V) == fed;
    if constexpr (!complete) {
      static_assert(complete,
                    "[prepare] the step takes one value for each tensor named in feeds(…), as in "
                    "auto step = s.prepare(loss, feeds(x)); step(3.f)");
      return detail::refused();
    } else {
      return std::apply(
          [this, &options, &values...](const auto&... target) {
            const std::tuple<decltype(feed_of(target, std::forward<V>(values)))...> given{
                feed_of(target, std::forward<V>(values))...};
            return std::apply(
                [this, &options](const auto&... f) {
                  (f.verify(), ...);
                  const ext::feed_ref refs[sizeof...(f) + 1] = {f.value()...};
                  return this->run_with({refs, sizeof...(f)}, options);
                },
                given);
          },
          feeds_.targets);
    }
  }
  /// The same with values by tensor, in any order: `step(label = labels, x = images)`. Throws
  /// invalid_argument for a tensor that `feeds(…)` does not name.
  /// @{
  template <class... F>
  requires(are_feeds<F...>) auto operator()(const F&... feeds) const {
    return (*this)(run_options{}, feeds...);
  }
  template <class... F>
  requires(are_feeds<F...>) auto operator()(const run_options& options, const F&... feeds) const {
    constexpr bool complete = sizeof...(F) == fed;
    if constexpr (!complete) {
      static_assert(complete,
                    "[prepare] the step takes one value for each tensor named in feeds(…), as in "
                    "auto step = s.prepare(loss, feeds(x)); step(3.f)");
      return detail::refused();
    } else {
      (feeds.verify(), ...);
      const feed_value* given[] = {&feeds...};
      return std::apply(
          [this, &options, &given](const auto&... target) {
            const ext::feed_ref refs[] = {feed_among(given, target.handle())...};
            return this->run_with(refs, options);
          },
          feeds_.targets);
    }
  }
  /// @}
  /// @cond refused
  template <class... V>
  requires(!has_options<V...> && !(ext::host_value<V> && ...) && !are_feeds<V...>) detail::refused
  operator()(const V&...) const {
    static_assert(detail::takes<prepared_step, detail::got<V>...>,
                  "[prepare] the step takes values on the host, in the order of feeds(x, y), as in "
                  "step(images, labels), or all by name, as in step(x = images, y = labels)");
    return {};
  }
  /// @endcond

 private:
  template <class X, class V>
  static feed_value feed_of(const X& target, V&& value) {
    if constexpr (ext::typed_expression<X>)
      return ext::make_feed<ext::value_type_of<X>, ext::shape_type_of<X>>(target.handle(),
                                                                          std::forward<V>(value));
    else
      return detail::make_any_feed(target.handle(), std::forward<V>(value));
  }

  friend braced;
  template <class... V>
  auto run_braced(const run_options& options, V&&... values) const {
    return std::apply(
        [this, &options, &values...](const auto&... target) {
          return (*this)(options, std::forward<V>(values).value_for(target.handle())...);
        },
        feeds_.targets);
  }
  template <std::size_t N>
  static ext::feed_ref feed_among(const feed_value* (&given)[N], const ext::output& target) {
    for (const feed_value* f : given)
      if (f->target() == ext::origin_of(target)) return f->value();
    detail::refuse_unfed(target);
  }
  auto run_with(std::span<const ext::feed_ref> values, const run_options& options) const {
    ext::step_results r = plan_->run(values, options);
    return detail::unpack(
        detail::request<Fetches...>::template take<Fetches...>(r, this->lengths_));
  }

  std::shared_ptr<ext::ready_plan> plan_;
  Feeds feeds_;
  detail::list_lengths<Fetches...> lengths_;
};

namespace detail {

template <class X>
inline constexpr bool is_feed_list = false;
template <class... X>
inline constexpr bool is_feed_list<feed_list<X...>> = true;

template <class... X>
struct type_list {};
/// `Kept…` followed by the types of `X…` that are fetches.
template <class Kept, class... X>
struct without_feeds {
  using type = Kept;
};
template <class... Kept, class X, class... Rest>
struct without_feeds<type_list<Kept...>, X, Rest...>
    : without_feeds<std::conditional_t<is_feed_list<X>, type_list<Kept...>, type_list<Kept..., X>>,
                    Rest...> {};

/// The feed_list among the arguments; an empty one if there is none.
template <class... X>
feed_list<> find_feeds(const X&...) {
  return {};
}
template <class X, class... Rest>
auto find_feeds(const X& x, const Rest&... rest) {
  if constexpr (is_feed_list<X>)
    return x;
  else
    return find_feeds(rest...);
}

template <class X>
concept can_be_prepared = fetch<X> || is_feed_list<X>;

}  // namespace detail

template <class... X>
auto session::prepare(const X&... x) {
  return prepare_at({}, x...);
}

template <class... X>
auto session::prepare_at(ext::source_location w, const X&... x) {
  if constexpr (!(detail::can_be_prepared<X> && ...)) {
    static_assert(detail::takes<session, X...>,
                  "[prepare] expects tensors, expressions, operations, and feeds(x, y) of the "
                  "tensors that each step is given values for");
    return [](const auto&...) { return detail::refused(); };
  } else {
    auto fed = detail::find_feeds(x...);
    std::vector<ext::output> fetches, targets;
    detail::list_lengths<X...> lengths{};
    [[maybe_unused]] std::size_t list = 0;
    std::size_t argument = 0;
    auto add_one = [&]<class V>(const V& v, std::size_t element) {
      if constexpr (requires { v.valid(); })
        if (!v.valid()) detail::refuse_empty_fetch("prepare", argument, element, w);
      fetches.push_back(detail::fetch_of<V>::handle(v));
    };
    auto add = [&]<class V>(const V& v) {
      ++argument;
      if constexpr (!detail::is_feed_list<V>) {
        if constexpr (detail::is_list<V>) {
          lengths[list++] = v.size();
          std::size_t element = 0;
          for (const auto& one : v) add_one(one, ++element);
        } else
          add_one(v, 0);
      }
    };
    (add(x), ...);
    std::apply([&](const auto&... t) { (targets.push_back(ext::origin_of(t.handle())), ...); },
               fed.targets);
    auto plan = plan_request(fetches, targets, w);
    return [&]<class... F>(detail::type_list<F...>) {
      return prepared_step<decltype(fed), F...>(std::move(plan), std::move(fed), lengths);
    }(typename detail::without_feeds<detail::type_list<>, X...>::type());
  }
}

}  // namespace deft
