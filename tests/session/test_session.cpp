// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deft/session/session.hpp>
#include <deft/session/wire/codec.hpp>
#include <thread>

#include "sessions.hpp"

using namespace deft;
using namespace deft::ext;
using testing::outcome_of;
using testing::own_graph;
using testing::usual_device;
using namespace std::chrono_literals;

TEST_CASE_FIXTURE(own_graph, "run yields one value, a tuple in the order written, or nothing") {
  session s;
  tensor<float, 3> a = constant({1.f, 2.f, 3.f});
  tensor<std::int32_t> n = constant(7);
  ndarray<float, 3> one = s.run(a);
  CHECK(one(2) == 3);

  auto three = s.run(n, a, a + 1.f);
  static_assert(std::is_same_v<std::tuple_element_t<0, decltype(three)>, std::int32_t>);
  CHECK(std::get<0>(three) == 7);
  CHECK(std::get<1>(three)(0) == 1);
  CHECK(std::get<2>(three)(0) == 2);

  variable<float> v("v", 2.f);
  operation nothing = no_op();
  static_assert(std::is_same_v<decltype(s.run(nothing)), detail::no_value>);
  static_assert(std::is_same_v<decltype(s.run(initialize_all(), nothing)), detail::no_value>);
  s.run(initialize_all());
  static_assert(std::is_same_v<decltype(s.run(nothing, v)), float>);
  CHECK(s.run(nothing, v) == 2.f);
  auto two = s.run(v, nothing, n);
  static_assert(std::tuple_size_v<decltype(two)> == 2);
  CHECK(std::get<1>(two) == 7);
}

TEST_CASE_FIXTURE(own_graph, "feeds are lvalues, rvalues, views, ranges and scalars") {
  session s;
  placeholder<float, dyn> x("x");
  placeholder<float> k("k");
  auto y = x * k;
  ndarray<float, 3> held{1, 2, 3};
  const ndarray<float, 3> constant_one{4, 5, 6};
  float raw[] = {7, 8};
  std::vector<float> list{9, 10};
  CHECK(s.run(y, x = held, k = 2.f)(2) == 6);
  CHECK(s.run(y, x = constant_one, k = 2.f)(0) == 8);
  CHECK(s.run(k = 1.f, x = ndarray<float, 2>{1, 5}, y)(1) == 5);
  CHECK(s.run(y, x = ndarray<float, dyn>::view(raw, 2), k = 10.f)(1) == 80);
  CHECK(s.run(y, x = list, k = 1.f)(1) == 10);
  CHECK(s.run(y, feed(x, std::vector<float>{3}), k = 1.f).size() == 1);
  // Any tensor may be fed, and then the nodes that compute it do not run.
  tensor<float, dyn> sum = x + k;
  CHECK(s.run(sum * 2.f, sum = list)(0) == 18);
}

TEST_CASE_FIXTURE(own_graph, "a fed fetch returns the feed, and shares no elements with it") {
  session s;
  placeholder<float, dyn> x("x");
  ndarray<float, 2> in{1, 2};
  auto out = s.run(x, x = in);
  out(0) = 5;
  CHECK(in(0) == 1);
  CHECK(s.run(x, x = in)(0) == 1);
}

TEST_CASE_FIXTURE(own_graph, "writing to a result changes that result only") {
  session s;
  variable<float, 4> w("w", zeros());
  s.run(initialize_all());
  any_array a = s.run(any_tensor(w)), again = s.run(any_tensor(w));
  a.mutable_data<float>()[0] = 100;
  CHECK(a.data<float>()[0] == 100);
  CHECK(again.data<float>()[0] == 0);
  CHECK(s.run(w) == ndarray<float, 4>{0, 0, 0, 0});
  // An update in place does not change values fetched before, nor do writes to those change it.
  s.run(w.assign_add(1.f));
  CHECK(again.data<float>()[0] == 0);
  CHECK(s.run(w) == ndarray<float, 4>{1, 1, 1, 1});

  auto k = constant({1.f, 2.f, 3.f});
  auto sum = k + k;
  any_array k1 = s.run(any_tensor(k));
  k1.mutable_data<float>()[0] = 100;
  CHECK(s.run(k) == ndarray<float, 3>{1, 2, 3});
  CHECK(s.run(any_tensor(k)).data<float>()[0] == 1);
  CHECK(s.run(sum) == ndarray<float, 3>{2, 4, 6});
  session unfolded({.fold = false});
  any_array k2 = unfolded.run(any_tensor(k));
  k2.mutable_data<float>()[0] = 100;
  CHECK(unfolded.run(sum) == ndarray<float, 3>{2, 4, 6});

  // Two fetches of one value, and of its alias.
  placeholder<float, dyn> x("x");
  auto [one, two, flat] =
      s.run(any_tensor(x * 2.f), any_tensor(x * 2.f), any_tensor(reshape(x * 2.f, shape<1, 3>)),
            x = ndarray<float, 3>{1, 2, 3});
  one.mutable_data<float>()[0] = -1;
  flat.mutable_data<float>()[1] = -1;
  CHECK(two.data<float>()[0] == 2);
  CHECK(two.data<float>()[1] == 4);
  CHECK(one.data<float>()[1] == 4);
}

TEST_CASE_FIXTURE(own_graph, "writing to a fed array changes no result and no variable") {
  session s;
  placeholder<float, dyn> x("x");
  variable<float, 4> w("w", zeros());
  s.run(initialize_all());
  auto keep = w.assign(reshape(x, shape<4>));
  ndarray<float, dyn> b(4);
  float* p = b.data();
  any_array any(dtype::float32, {4});
  float* q = any.mutable_data<float>();
  std::vector<ndarray<float, 2, 2>> outs;
  std::vector<any_array> whole;
  for (int i = 0; i < 3; ++i) {
    std::fill(p, p + 4, static_cast<float>(i));
    std::fill(q, q + 4, static_cast<float>(10 + i));
    outs.push_back(s.run(reshape(x, shape<2, 2>), x = b));
    whole.push_back(s.run(any_tensor(x), x = any));
    whole.push_back(s.run(any_tensor(x), x = any_array(b.array())));  // shared, then moved
    s.run(keep, x = b);
    p[0] = -1;
    CHECK(s.run(w)(0) == static_cast<float>(i));
    CHECK(std::as_const(b).data() == p);
  }
  for (int i = 0; i < 3; ++i) {
    CHECK(std::as_const(outs[i])(0, 0) == static_cast<float>(i));
    CHECK(whole[2 * i].data<float>()[3] == static_cast<float>(10 + i));
    CHECK(whole[2 * i + 1].data<float>()[3] == static_cast<float>(i));
  }
  auto r1 = s.run(x, x = b);
  const float before = std::as_const(r1)(1);
  p[1] = 5;
  CHECK(std::as_const(r1)(1) == before);
}

TEST_CASE_FIXTURE(own_graph, "what is moved in and fetched again is not copied") {
  session s;
  placeholder<float, dyn> x("x");
  ndarray<float, dyn> moved{1, 2, 3};
  const float* elements = std::as_const(moved).data();
  const auto back = s.run(x, x = std::move(moved));
  CHECK(back.data() == elements);
}

TEST_CASE_FIXTURE(own_graph, "values outlive their session, and runs that follow") {
  ndarray<float, dyn> first, second;
  {
    session s;
    placeholder<float, dyn> x("x");
    auto y = x + 1.f;
    first = s.run(y, x = std::vector<float>{1, 2});
    second = s.run(y, x = std::vector<float>{3, 4});
  }
  CHECK(first(0) == 2);
  CHECK(second(1) == 5);
}

TEST_CASE_FIXTURE(own_graph, "an any_tensor is fetched as an any_array") {
  session s;
  any_tensor t = constant({1.f, 2.f});
  any_array v = s.run(t);
  CHECK(v.type() == dtype::float32);
  CHECK(v.shape() == dims{2});
  auto [a, b] = s.run(t, t + t);
  CHECK(b.data<float>()[1] == 4);
}

TEST_CASE_FIXTURE(own_graph, "fetches and feeds may come in containers") {
  session s;
  placeholder<float> x("x");
  placeholder<float, dyn> y("y");
  variable<float> count("count", 0.f);
  s.run(initialize_all());
  const std::vector<any_tensor> some{any_tensor(x * 2.f), any_tensor(y), any_tensor(count)};
  std::vector<feed_value> fed;
  fed.push_back(x = 3.f);
  fed.push_back(y = {1, 2});
  const std::vector<any_array> values = s.run(some, fed);
  CHECK(values.size() == 3);
  CHECK(values[0].data<float>()[0] == 6);
  CHECK(values[1].shape() == dims{2});
  const std::vector<operation> twice{count.assign_add(1.f), no_op()};
  const std::vector<tensor<float>> scalars{x, x + 1.f};
  auto [many, one, numbers] = s.run(some, twice, count + x, scalars, y = {4}, x = 1.f);
  static_assert(std::is_same_v<decltype(numbers), std::vector<float>>);
  CHECK(many.size() == 3);
  CHECK(many[1].shape() == dims{1});
  CHECK(numbers == std::vector<float>{1, 2});
  CHECK(s.run(count) == 1);
  auto step = s.prepare(scalars, twice, y, feeds(x, y));
  auto [again, vector] = step(5.f, ndarray<float, dyn>{1, 2, 3});
  CHECK(again == std::vector<float>{5, 6});
  CHECK(vector.size() == 3);
  CHECK(s.run(count) == 2);
  CHECK(s.explain(some, fed).find("count") != std::string::npos);
  CHECK(outcome_of([&] { s.run(std::vector<any_tensor>()); }).says("nothing is fetched"));
}

TEST_CASE("a session knows its graph, and a thread's own graph is explained") {
  testing::log_lines lines;
  graph mine;
  auto in = as_default(mine);
  session s;
  CHECK(s.graph() == mine);
  variable<float> w("w", 1.f);
  std::string uninitialized;
  std::thread([&] {
    s.run(initialize_all());  // of the process's graph, which has no variables
    uninitialized = testing::error_of([&] { s.run(w); });
    auto scope = as_default(graph_of(w));
    s.run(initialize_all());
  }).join();
  CHECK(uninitialized.starts_with(
      "failed_precondition: variable \"w\" is not initialized; "
      "initialize_all() initializes the current graph of this thread, which is another one: "));
  CHECK(s.run(w) == 1);
  const std::string logged = join(lines.take(), "\n");
  INFO(logged);
  CHECK(logged.find("the graph that is current in this thread has no variables") !=
        std::string::npos);
  CHECK(logged.find("session that was made while another graph was current") != std::string::npos);

  graph other;
  auto within = as_default(other);
  placeholder<float> x("x");
  auto o = outcome_of([&] { s.run(w, x, x = 1.f); });
  CAPTURE(o);
  CHECK(o.code == errc::invalid_argument);
  CHECK(o.says("[run] the fetches \"w\" and \"x\" are from different graphs"));
}

TEST_CASE_FIXTURE(own_graph, "variables keep their values between runs, and must be initialized") {
  session s;
  variable<float, 2> v("v", zeros());
  auto o = outcome_of([&] { s.run(v); });
  CHECK(o.code == errc::failed_precondition);
  CHECK(o.says("\"v\" is not initialized"));
  s.run(initialize_all());
  auto more = v.assign_add(constant({1.f, 2.f}));
  static_assert(std::is_same_v<decltype(s.run(more)), detail::no_value>);
  s.run(more);
  auto [after, before] = s.run(more, more.value(), v);
  CHECK(after(1) == 4);
  CHECK(before(1) == 2);
  CHECK(s.run(v)(1) == 4);
  // Feeding the new value prunes the nodes that would have computed it.
  ndarray<float, 2> fed{7, 8};
  CHECK(s.run(more, more.value(), feed(more.value(), fed)) == fed);
  s.run(more, feed(more.value(), fed));
  CHECK(s.run(v)(1) == 4);
  s.reset();
  CHECK(s.run(constant(1)) == 1);
}

TEST_CASE_FIXTURE(own_graph, "a large integer is an exact initial value") {
  constexpr std::int64_t large = (std::int64_t{1} << 53) + 1;
  variable<std::int64_t, 1> v("v", large);
  session s;
  s.run(initialize_all());
  CHECK(s.run(v)(0) == large);
}

TEST_CASE_FIXTURE(own_graph, "a fed variable changes all its reads, but not its stored value") {
  session s;
  variable<float> v("v", 1.f);
  s.run(initialize_all());
  auto up = v.assign_add(1.f);
  tensor<float> late = [&] {
    auto after = control_dependencies(up);
    return v.read();
  }();
  CHECK(s.run(late, v = 10.f) == 10);  // it waits for nothing any more
  auto [both, plain] = s.run(late, v * 2.f, v = 10.f);
  CHECK(both == 10);
  CHECK(plain == 20);
  CHECK(s.run(v) == 1);
  CHECK(s.run(late) == 2);
}

TEST_CASE_FIXTURE(own_graph, "a prepared step takes values in the order of its feeds") {
  session s;
  placeholder<float> x("x"), y("y");
  variable<float> v("v", 0.f);
  s.run(initialize_all());
  auto step = s.prepare(x - y, v.assign_add(1.f), feeds(x, y));
  static_assert(std::is_same_v<decltype(step(1.f, 2.f)), float>);
  CHECK(step(5.f, 3.f) == 2);
  auto twice = s.prepare(x * 2.f, feeds(x));
  static_assert(std::is_same_v<decltype(twice(1.f)), float>);
  CHECK(twice(4.f) == 8);
  const any_tensor any(x);
  auto loose = s.prepare(any * 2.f, feeds(any));
  CHECK(*loose(4.f).data<float>() == 8);
  CHECK(*loose(ndarray<float>(5.f)).data<float>() == 10);
  CHECK(
      outcome_of([&] { loose(ndarray<double>(5.)); }).says("[feed] double() is fed where float()"));
  CHECK(step(y = 3.f, x = 5.f) == 2);
  CHECK(outcome_of([&] {
          step(x = 5.f, x = 3.f);
        }).says("[prepare] the step takes a value for this tensor, and none was given"));
  placeholder<float, 2> p("p");
  placeholder<float, dyn, 2> q("q");
  auto lists = s.prepare(sum(p) + sum(q), feeds(p, q));
  CHECK(lists({1, 2}, {{3, 4}, {5, 6}}) == 21);
  CHECK(lists({1, 2}, ndarray<float, 1, 2>{3, 4}) == 10);
  CHECK(lists(q = {{3, 4}}, p = {1, 2}) == 10);
  CHECK(lists(run_options{}, {1, 2}, {{3, 4}}) == 10);
  CHECK(lists({.timeout = std::chrono::minutes(1)}, {1, 2}, ndarray<float, 1, 2>{3, 4}) == 10);
  CHECK(lists(std::vector<float>{1, 2}, {{3, 4}}) == 10);
  CHECK(outcome_of([&] {
          lists({1, 2, 3}, {{3, 4}});
        }).says("[feed] a list of 3 elements is fed where float(2) is expected"));
  auto none = s.prepare(constant(3));
  CHECK(none() == 3);
  static_assert(std::is_same_v<decltype(s.prepare(no_op())()), detail::no_value>);
  CHECK(s.run(v) == 2);
  auto o = outcome_of([&] { s.prepare(x + 1.f, feeds(x, y)); });
  CHECK(o.node == "y");
}

TEST_CASE("options are sent to the master, but not the secret") {
  const session_options sent{.log_device_placement = true,
                             .allow_soft_placement = true,
                             .fold = false,
                             .fuse = false,
                             .intra_op_threads = 3,
                             .timeout = 5s,
                             .connect_timeout = 7s,
                             .cached_plans = 9,
                             .credentials = {.secret = "hidden"}};
  const auto bytes = to_bytes(sent);
  session_options got;
  from_bytes(bytes, got);
  CHECK(got.log_device_placement);
  CHECK(got.allow_soft_placement);
  CHECK_FALSE(got.fold);
  CHECK_FALSE(got.fuse);
  CHECK(got.timeout == 5s);
  CHECK(got.connect_timeout == 7s);
  // Reported by the client or by the task.
  CHECK(got.intra_op_threads == 0);
  CHECK(got.cached_plans == session_options().cached_plans);
  CHECK(got.credentials.secret.empty());
  const std::string_view hidden = "hidden";
  CHECK(std::ranges::search(bytes, hidden, {}, [](std::byte b) {
          return static_cast<char>(b);
        }).empty());
}
