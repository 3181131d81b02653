// SPDX-License-Identifier: Apache-2.0
// deft/session/session.hpp: runs parts of a graph, in this process or on a cluster.
#pragma once
#include <array>
#include <deft/expr/tensor.hpp>
#include <deft/graph/dot.hpp>
#include <deft/op/variable.hpp>
#include <deft/plan/place.hpp>
#include <deft/session/engine.hpp>
#include <deft/session/explain.hpp>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace deft {

class session;
class session_impl;
class task;
class monitored_session;

namespace detail {

/// Options with a stream of random numbers.
struct numbered_options {
  session_options options;
};
/// That of task `index` for its next session on the current graph, if the options have none.
numbered_options numbered(session_options options, std::uint64_t index = 0);
std::shared_ptr<engine> engine_at(const std::string& target, const session_options& options);

/// What a fetch asks for and yields; specialised by kind.
template <class X>
struct fetch_of;

template <class X>
requires std::derived_from<X, operation>
struct fetch_of<X> {
  static output handle(const X& x) { return {x.handle(), run_only}; }
  static std::tuple<> take(step_results&, std::size_t) { return {}; }
};

/// Moves out, or copies the one element of rank 0 without an allocation.
any_array take_result(step_results& r, std::size_t i);
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
    if constexpr (shape_type_of<X>::value.n == 0)
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

/// Several fetches or feeds of one kind, whose number only run time knows.
template <class X>
inline constexpr bool is_list = false;
template <class X>
inline constexpr bool is_list<std::vector<X>> = true;
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
concept fetch = expression<typename kind_of<X>::type>;
template <class... X>
inline constexpr bool can_be_run = ((fetch<X> || feeds_something<X>)&&...);

/// One value as itself, several as a tuple, none as void.
template <class... V>
auto unpack(std::tuple<V...> values) {
  if constexpr (sizeof...(V) == 1)
    return std::get<0>(std::move(values));
  else if constexpr (sizeof...(V) > 1)
    return values;
}

/// A list of `X`, in place where nothing is a container.
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

/// How many fetches each container among the arguments has.
template <class... X>
using list_lengths =
    std::array<std::size_t, (std::size_t{is_list<X> && !feeds_something<X>} + ... + 0)>;

/// Throws failed_precondition: argument number `argument`, or its element number `element` if that
/// is not 0, is a tensor or operation without a node. Both count from 1.
[[noreturn]] void refuse_empty_fetch(std::string_view function, std::size_t argument,
                                     std::size_t element);

/// What the arguments of run fetch and feed, in order.
template <class... X>
struct request {
  static constexpr std::size_t feeds = (std::size_t{feeds_something<X>} + ... + 0);
  static constexpr std::size_t fetches = sizeof...(X) - feeds;
  static constexpr bool grows = (is_list<X> || ...);
  request_list<output, fetches, grows> fetched;
  request_list<output, feeds, grows> targets;
  request_list<feed_ref, feeds, grows> fed;
  list_lengths<X...> lengths{};

  explicit request(const X&... x) {
    [[maybe_unused]] std::size_t list = 0;
    std::size_t argument = 0;
    auto add = [&](const auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
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
      targets.add(v.target()), fed.add(v.value());
    else {
      if constexpr (requires { v.valid(); })
        if (!v.valid()) refuse_empty_fetch("run", argument, element);
      fetched.add(fetch_of<V>::handle(v));
    }
  }
  template <class V>
  static auto take_list(step_results& r, std::size_t& i, std::size_t n) {
    if constexpr (std::derived_from<V, operation>) {
      i += n;
      return std::tuple<>();
    } else {
      using T = std::tuple_element_t<0, decltype(fetch_of<V>::take(r, i))>;
      std::vector<T> all;
      all.reserve(n);
      for (; n > 0; --n) all.push_back(std::get<0>(fetch_of<V>::take(r, i++)));
      return std::tuple(std::move(all));
    }
  }
};

/// Splits the arguments of a run into fetches and feeds for `step`, and gives each fetch its type.
template <class Step, class... X>
auto run_fetches(Step&& step, const X&... x) {
  if constexpr (!can_be_run<X...>) {
    static_assert(takes<session, X...>,
                  "[run] expects tensors, expressions, operations and feeds, and got another type");
    return refused();
  } else if constexpr (request<X...>::fetches == 0) {
    static_assert(takes<session, X...>, "[run] expects something to fetch, and got feeds alone");
    return refused();
  } else {
    const request<X...> r(x...);
    step_results results = step(r.fetched.get(), r.targets.get(), r.fed.get());
    return unpack(request<X...>::template take<X...>(results, r.lengths));
  }
}

}  // namespace detail

/// The placeholders of a prepared step, in the order of its arguments.
template <class... X>
struct feed_list {
  std::tuple<X...> targets;
};
template <expression... X>
feed_list<X...> feeds(const X&... x) {
  return {{x...}};
}

/// Runs what fetches need. Made for this process, or for a task of a cluster by its target.
/// Thread-safe: several threads may run at once.
class session {
 public:
  /// In this process, with devices of its own.
  explicit session(session_options options = {});
  /// On the task at `target` ("deft://host:port"), which reaches the others of its cluster. A
  /// target in this process is called directly. Throws unavailable if nobody answers within
  /// connect_timeout.
  /// (A template, as a braced list of options must not be taken for a string.)
  template <std::convertible_to<std::string_view> Target>
  explicit session(const Target& target, session_options options = {})
      : session(std::string(target), detail::numbered(std::move(options))) {}
  /// On the server of `self`, or in this process if it has none.
  explicit session(task& self, session_options options = {});
  explicit session(std::shared_ptr<engine> on, session_options options);
  ~session();
  session(session&&) noexcept;

  /// Fetches and feeds in any order. One fetch yields its value, several a tuple in the order
  /// written; operations yield nothing. A fetch of rank 0 yields the element. A std::vector of
  /// fetches yields a vector of their values, one of feeds feeds them all.
  /// Throws failed_precondition for an empty tensor, an uninitialized variable or a closed session,
  /// invalid_argument for feeds that do not fit and fetches of several graphs, unavailable where a
  /// task is lost, deadline_exceeded after the timeout, and what the operations throw.
  template <class... X>
  auto run(const X&... x) {
    return run(run_options{}, x...);
  }
  template <class... X>
  auto run(const run_options& options, const X&... x) {
    return detail::run_fetches(
        [this, &options](auto fetches, auto targets, auto feeds) {
          return this->run_request(fetches, targets, feeds, options);
        },
        x...);
  }

  /// Plans now what is called often: `auto step = s.prepare(train, loss, feeds(x, label))`, then
  /// `float l = step(images, labels)`. Throws what run throws before it computes anything.
  template <class... X>
  auto prepare(const X&... x);

  /// Full name of the device that runs `t` when it is fetched alone.
  std::string device_of(const any_tensor& t);
  /// What will be run for these fetches: see explain_plan.
  template <class... X>
  std::string explain(const X&... x) {
    return explain(explain_options{}, x...);
  }
  template <class... X>
  std::string explain(const explain_options& options, const X&... x) {
    return explain_plan(describe(x...), options);
  }
  /// The same before it is put into words.
  template <class... X>
  requires detail::can_be_run<X...> plan_description describe(const X&... x) {
    detail::request<X...> r(x...);
    return describe_request(r.fetched.get(), r.targets.get());
  }
  std::vector<device_info> devices();

  /// Cancels what runs; later runs are failed_precondition.
  void close();
  /// Forgets the variables of a container, on all tasks.
  void reset(const std::string& container = "");

  const session_options& options() const;
  /// The graph that was current where the session was made. A run may fetch from another one, which
  /// is logged as a warning.
  deft::graph graph() const;
  session_impl& impl() { return *impl_; }

 private:
  explicit session(const detail::numbered_options& o);
  session(const std::string& target, const detail::numbered_options& o)
      : session(detail::engine_at(target, o.options), o.options) {}
  session(task& self, const detail::numbered_options& o);
  friend class monitored_session;
  step_results run_request(std::span<const output> fetches, std::span<const output> targets,
                           std::span<const feed_ref> feeds, const run_options& options);
  plan_description describe_request(std::span<const output> fetches,
                                    std::span<const output> targets);
  std::shared_ptr<ready_plan> plan_request(std::span<const output> fetches,
                                           std::span<const output> feeds);

  std::shared_ptr<session_impl> impl_;
};

/// The session's devices: name, kind, memory, PCI bus id.
inline std::vector<device_info> list_devices(session& s) { return s.devices(); }
/// What will happen, before it does.
template <class... X>
std::string explain(session& s, const X&... x) {
  return s.explain(x...);
}
/// The plan for these fetches and feeds in Graphviz's language, each node on its device: `dot
/// -Tsvg` draws it.
template <class... X>
std::string to_dot(session& s, const X&... x) {
  return to_dot(s.describe(x...).placed);
}
/// The graph as it was written.
template <class... X>
requires(sizeof...(X) > 0 && detail::can_be_run<X...>) std::string to_dot(const X&... x) {
  detail::request<X...> r(x...);
  return to_dot(flatten(r.fetched.get(), r.targets.get()).graph);
}

namespace detail {
std::string placements(session& s, std::span<const output> tensors);
}
/// A line for each: its name, and the full name of the device that runs it when it is fetched
/// alone. Variables, tensors and expressions.
template <expression... X>
std::string placements(session& s, const X&... x) {
  const output tensors[] = {detail::fetch_of<X>::handle(x)...};
  return detail::placements(s, tensors);
}

/// What was asked for, canonically; empty if nothing was.
std::string requested_device(const any_tensor& t);

}  // namespace deft

#include <deft/session/prepared.hpp>
