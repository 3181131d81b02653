// SPDX-License-Identifier: Apache-2.0
#include <deft/expr/feed.hpp>

#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::own_graph;

namespace {
template <class F>
void says(F&& f, std::string_view text) {
  std::string e = testing::error_of(f);
  INFO(e);
  CHECK(e.starts_with(text));
}
}  // namespace

TEST_CASE_FIXTURE(own_graph, "every kind of host value makes a feed") {
  placeholder<float, dyn, 2> x("x");
  placeholder<float> scalar("scalar");
  placeholder<std::int32_t, dyn> list("list");
  const ndarray<float, 3, 2> array{1, 2, 3, 4, 5, 6};
  feed_value f = x = array;
  CHECK(f.target() == x.handle());
  CHECK(f.type() == dtype::float32);
  CHECK(f.shape() == dims{3, 2});
  CHECK(f.data() == array.data());
  f = scalar = 2;
  CHECK(f.type() == dtype::float32);
  CHECK(f.shape() == dims{});
  CHECK(*static_cast<const float*>(f.data()) == 2.f);
  CHECK_FALSE(f.value().keep);
  std::vector<std::int32_t> v{1, 2, 3};
  f = list = v;
  CHECK(f.shape() == dims{3});
  CHECK(f.data() == v.data());
  f = list = std::vector<std::int32_t>{4, 5};
  CHECK(f.shape() == dims{2});
  CHECK(static_cast<const std::int32_t*>(f.data())[1] == 5);
  any_array a(dtype::float32, {1, 2});
  f = x = a;
  CHECK(f.data() == a.raw());
}

TEST_CASE_FIXTURE(own_graph, "an lvalue is borrowed, an rvalue is kept") {
  placeholder<float, dyn> x("x");
  const float* elements = nullptr;
  feed_value kept = x = [&] {
    ndarray<float, dyn> a{1, 2, 3};
    elements = std::as_const(a).data();
    return a;
  }();
  CHECK(kept.data() == elements);
  CHECK(kept.value().data == elements);
  CHECK(kept.value().keep.data() == elements);

  ndarray<float, dyn> mine{1, 2, 3};
  const any_array any = mine.array();
  std::vector<float> list{1, 2};
  for (const feed_value& f :
       {x = mine, x = mine.array(), x = any, x = list, x = std::as_const(mine)})
    CHECK_FALSE(f.value().keep);
  feed_value borrowed = x = mine;
  CHECK(borrowed.data() == std::as_const(mine).data());
}

TEST_CASE_FIXTURE(own_graph, "an rvalue with shared elements is not given away, but kept alive") {
  placeholder<float, dyn> x("x");
  float raw[] = {1, 2, 3, 4};
  feed_value viewed = x = ndarray<float, 4>::view(raw);
  CHECK(viewed.data() == raw);
  CHECK_FALSE(viewed.value().keep);
  auto mine = std::make_unique<ndarray<float, dyn>>(ndarray<float, dyn>{5, 6});
  feed_value shared = x = any_array(mine->array());
  CHECK(shared.data() == std::as_const(*mine).data());
  CHECK_FALSE(shared.value().keep);
  mine.reset();
  CHECK(static_cast<const float*>(shared.data())[1] == 6);
}

TEST_CASE_FIXTURE(own_graph, "a feed that does not fit names the tensor and its source location") {
  placeholder<float, dyn, 2> x("x");
  placeholder<std::int32_t, 3> list("list");
  says(
      [&] {
        (x = any_array(dtype::float32, {3, 3})).verify();
      },
      "invalid_argument: [feed] float(3,3) is fed where float(?,2) is expected, node \"x\" at "
      "test_feed.cpp:");
  says(
      [&] {
        (x = any_array(dtype::float64, {3, 2})).verify();
      },
      "invalid_argument: [feed] double(3,2) is fed where float(?,2) is expected");
  says([&] { (x = any_array(dtype::float32, {2})).verify(); },
       "invalid_argument: [feed] float(2) is fed where float(?,2) is expected");
  says([&] { (x = any_array()).verify(); }, "invalid_argument: [feed] ");
  std::vector<std::int32_t> two{1, 2};
  says([&] { (list = two).verify(); },
       "invalid_argument: [feed] int32(2) is fed where int32(3) is expected, node \"list\"");
  ndarray<float, dyn, dyn> wrong(2, 3);
  says([&] { (x = wrong).verify(); },
       "invalid_argument: [feed] float(2,3) is fed where float(?,2) is expected");
  says(
      [&] {
        (x = wrong).verify({"train.cpp", 31});
      },
      "invalid_argument: [feed] float(2,3) is fed where float(?,2) is expected (run at "
      "train.cpp:31), "
      "node \"x\" at test_feed.cpp:");
}

TEST_CASE_FIXTURE(own_graph, "a braced list is fed in row-major order") {
  placeholder<float, 2, 2> x("x");
  placeholder<std::int64_t, dyn> list("list");
  placeholder<double> scalar("scalar");
  variable<float, 2> v("v", zeros());
  auto elements = []<class T>(const feed_value& f, std::initializer_list<T> expected) {
    return std::equal(expected.begin(), expected.end(), static_cast<const T*>(f.data()));
  };
  CHECK(elements(x = {1, 2.5f, 3, 4}, {1.f, 2.5f, 3.f, 4.f}));
  CHECK((x = {1, 2, 3, 4}).shape() == dims{2, 2});
  CHECK(elements(list = {7, 8, 9}, {std::int64_t{7}, std::int64_t{8}, std::int64_t{9}}));
  CHECK((list = {7}).shape() == dims{1});
  CHECK((list = {0}).shape() == dims{1});
  CHECK(elements(v = {0, 1}, {0.f, 1.f}));
  placeholder<std::uint8_t, 1> byte("byte");
  says([&] { (void)(byte = {300}); },
       "invalid_argument: the literal 300 does not fit uint8, node \"byte\" at test_feed.cpp:");
  CHECK(elements(scalar = {0.5}, {0.5}));
  CHECK(elements(v = {1, 2}, {1.f, 2.f}));
  placeholder<float, dyn, 2> pairs("pairs");
  says(
      [&] {
        (void)(pairs = {1, 2, 3});
      },
      "invalid_argument: [feed] a list of 3 elements is fed where float(?,2) is expected, node "
      "\"pairs\" at test_feed.cpp:");
}

TEST_CASE_FIXTURE(own_graph, "nested braces are fed row by row") {
  placeholder<float, dyn, 2> x("x");
  placeholder<std::int32_t, 1, 2, 2> cube("cube");
  variable<float, 2, 1> v("v", zeros());
  tensor<float, dyn, 2> named = x * 2.f;
  auto elements = []<class T>(const feed_value& f, std::initializer_list<T> expected) {
    return std::equal(expected.begin(), expected.end(), static_cast<const T*>(f.data()));
  };
  CHECK(elements(x = {{1, 2}, {3, 4.5f}, {5, 6}}, {1.f, 2.f, 3.f, 4.5f, 5.f, 6.f}));
  CHECK((x = {{1, 2}, {3, 4}, {5, 6}}).shape() == dims{3, 2});
  CHECK((x = {{1, 2}}).shape() == dims{1, 2});
  CHECK(elements(v = {{1}, {2}}, {1.f, 2.f}));
  CHECK((cube = {{{1, 2}, {3, 4}}}).shape() == dims{1, 2, 2});
  CHECK(elements(named = {{7, 8}}, {7.f, 8.f}));
  CHECK((named = {7, 8, 9, 10}).shape() == dims{2, 2});
  const feed_value kept = (x = {{1, 2}, {3, 4}});
  CHECK(elements(kept, {1.f, 2.f, 3.f, 4.f}));
}

TEST_CASE_FIXTURE(own_graph, "feed() takes expressions and tensors known only at run time") {
  placeholder<float, 2> x("x");
  auto e = x * 2;
  feed_value f = feed(e, ndarray<float, 2>{1, 2});
  CHECK(f.target() == any_tensor(e).handle());
  any_tensor t = any(dtype::float64, {dyn}), s = any(dtype::uint8, {});
  CHECK(feed(t, ndarray<double, 3>{1, 2, 3}).shape() == dims{3});
  CHECK(*static_cast<const std::uint8_t*>(feed(s, 7).data()) == 7);
  CHECK(feed(t, std::vector<double>{1, 2}).shape() == dims{2});
  says(
      [&] {
        feed(t, ndarray<float, 3>{1, 2, 3}).verify();
      },
      "invalid_argument: [feed] float(3) is fed where double(?) is expected");
  says([&] { feed(t, 1.0).verify(); }, "invalid_argument: [feed] double() is fed where double(?)");
  says([&] { (void)feed(s, 0.5); },
       "invalid_argument: [feed] a literal is fed where uint8() is expected: it has another dtype, "
       "node \"any_1\" at modeling.hpp:");
  says([&] { (void)feed(s, 300); },
       "invalid_argument: the literal 300 does not fit uint8, node \"any_1\" at modeling.hpp:");
  any_tensor n = any(dtype::int32, {}), f32 = any(dtype::float32, {});
  says([&] { (void)feed(n, (std::int64_t{1} << 40) + 5); },
       "invalid_argument: the literal 1099511627781 does not fit int32");
  says([&] { (void)feed(f32, 1e300); }, "invalid_argument: the literal 1e+300 does not fit float");
  placeholder<float> pf("pf");
  says([&] { (void)(pf = 1e300); },
       "invalid_argument: the literal 1e+300 does not fit float, node \"pf\" at test_feed.cpp:");
  CHECK(*static_cast<const float*>(feed(f32, 0.1).data()) == 0.1f);
}
