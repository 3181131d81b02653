// SPDX-License-Identifier: Apache-2.0
#include <deft/op/placeholder.hpp>

#include <deft/op/name.hpp>
#include <deft/op/variable.hpp>

#include "modeling.hpp"

using namespace deft;

TEST_CASE_FIXTURE(testing::own_graph, "a placeholder has a name, dtype and shape") {
  placeholder<float, dyn, 784> x("x"), again("x");
  CHECK(name_of(x) == "x");
  CHECK(name_of(again) == "x_1");
  CHECK_FALSE(same(x, again));
  CHECK(testing::type_of(x) == "float(?,784)");
  auto scope = name_scope("input");
  placeholder<float> y("y");
  CHECK(name_of(y) == "input/y");
}

TEST_CASE_FIXTURE(testing::own_graph, "names are UTF-8") {
  placeholder<float> x("gr\u00f6\u00dfe");
  CHECK(name_of(x) == "gr\u00f6\u00dfe");
  CHECK(testing::error_of([] { placeholder<float> y("f\xfcr"); })
            .starts_with("invalid_argument: [placeholder] \"f\\xfcr\" is not a valid name: it is "
                         "not UTF-8"));
  CHECK(
      testing::error_of([&] {
        name(x, "f\xfcr");
      }).starts_with("invalid_argument: [name] \"f\\xfcr\" is not a valid name: it is not UTF-8"));
  CHECK(
      testing::error_of([] { variable<float> v("f\xfcr", 1.f); }).starts_with("invalid_argument"));
}

TEST_CASE_FIXTURE(testing::own_graph, "assigning a value makes a feed") {
  const placeholder<float, dyn, 2> x("x");
  placeholder<float> s("s");
  placeholder<std::int32_t, dyn> v("v");
  ndarray<float, 3, 2> value{1, 2, 3, 4, 5, 6};
  feed_value f = x = value;
  CHECK(f.target() == x.handle());
  CHECK(f.shape() == dims{3, 2});
  CHECK(f.data() == std::as_const(value).data());  // borrowed
  feed_value scalar = s = 0.5f;
  CHECK(*static_cast<const float*>(scalar.data()) == 0.5f);
  std::vector<std::int32_t> list{1, 2, 3};
  feed_value of_list = v = list;
  CHECK(of_list.shape() == dims{3});
  CHECK(testing::error_of([&] {
          (x = any_array(dtype::float32, dims{3, 3})).verify();
        })
            .starts_with("invalid_argument: [feed] float(3,3) is fed where float(?,2) is expected, "
                         "node \"x\" at test_placeholder.cpp:"));
}

TEST_CASE_FIXTURE(testing::own_graph, "a copy refers to the same placeholder") {
  placeholder<float, 2> x("x");
  auto y = x;
  tensor<float, 2> t = x;
  CHECK(same(x, y));
  CHECK(same(x, t));
}
