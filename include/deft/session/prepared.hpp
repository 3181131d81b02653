// SPDX-License-Identifier: Apache-2.0
// deft/session/prepared.hpp: steps that are planned once and called often.
#pragma once
#include <deft/session/session.hpp>

namespace deft {

/// What session::prepare returns: `auto step = s.prepare(train, loss, feeds(x, label))`, then
/// `float l = step(images, labels)`. Thread-safe. Must not outlive its session.
template <class Feeds, class... Fetches>
class prepared_step {
 public:
  prepared_step(std::shared_ptr<ready_plan> plan, Feeds feeds,
                const detail::list_lengths<Fetches...>& lengths)
      : plan_(std::move(plan)), feeds_(std::move(feeds)), lengths_(lengths) {}

  /// Runs the step. `values` are those of the tensors in `feeds(…)`, in that order: scalars,
  /// ndarrays, or for a vector anything contiguous. Returns and throws as session::run does.
  template <host_value... V>
  auto operator()(V&&... values) const {
    return (*this)(run_options{}, std::forward<V>(values)...);
  }
  /// The same with options for this run.
  template <host_value... V>
  auto operator()(const run_options& options, V&&... values) const {
    constexpr bool complete = sizeof...(V) == std::tuple_size_v<decltype(Feeds::targets)>;
    if constexpr (!complete) {
      static_assert(complete,
                    "[prepare] the step takes one value for each tensor named in feeds(…), as in "
                    "auto step = s.prepare(loss, feeds(x)); step(3.f)");
      return detail::refused();
    } else {
      return std::apply(
          [this, &options, &values...](const auto&... target) {
            const std::tuple<decltype(feed_of(target, std::forward<V>(values)))...> fed{
                feed_of(target, std::forward<V>(values))...};
            return std::apply(
                [this, &options](const auto&... f) {
                  (f.verify(), ...);
                  const feed_ref refs[sizeof...(f) + 1] = {f.value()...};
                  step_results r = this->plan_->run({refs, sizeof...(f)}, options);
                  return detail::unpack(
                      detail::request<Fetches...>::template take<Fetches...>(r, this->lengths_));
                },
                fed);
          },
          feeds_.targets);
    }
  }

 private:
  template <class X, class V>
  static feed_value feed_of(const X& target, V&& value) {
    if constexpr (typed_expression<X>)
      return make_feed<value_type_of<X>, shape_type_of<X>>(target.handle(), std::forward<V>(value));
    else
      return detail::make_any_feed(target.handle(), std::forward<V>(value));
  }

  std::shared_ptr<ready_plan> plan_;
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
auto session::prepare_at(source_place w, const X&... x) {
  if constexpr (!(detail::can_be_prepared<X> && ...)) {
    static_assert(detail::takes<session, X...>,
                  "[prepare] expects tensors, expressions, operations, and feeds(x, y) of the "
                  "tensors that each step is given values for");
    return [](const auto&...) { return detail::refused(); };
  } else {
    auto fed = detail::find_feeds(x...);
    std::vector<output> fetches, targets;
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
    std::apply([&](const auto&... t) { (targets.push_back(t.handle()), ...); }, fed.targets);
    auto plan = plan_request(fetches, targets, w);
    return [&]<class... F>(detail::type_list<F...>) {
      return prepared_step<decltype(fed), F...>(std::move(plan), std::move(fed), lengths);
    }(typename detail::without_feeds<detail::type_list<>, X...>::type());
  }
}

}  // namespace deft
