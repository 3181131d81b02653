// SPDX-License-Identifier: Apache-2.0
#include <deft/op/catalog.hpp>
#include <deft/op/gradients.hpp>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::maker;
using testing::type_of;

namespace {

void check_error(auto f, std::string_view text) {
  const std::string e = testing::error_of(f);
  INFO(e);
  CHECK(e.starts_with("invalid_argument: " + std::string(text)));
}

}  // namespace

TEST_CASE_FIXTURE(testing::own_graph, "slices have the extents that were asked for") {
  placeholder<float, dyn, 10> x("x");
  static_assert(std::is_same_v<decltype(slice(x, at<0, 2>, shape<dyn, 3>)), tensor<float, dyn, 3>>);
  static_assert(std::is_same_v<decltype(slice(x, at<1, 2>, shape<4, dyn>)), tensor<float, 4, 8>>);
  static_assert(
      std::is_same_v<decltype(slice(x * 2, at<0, 10>, shape<0, 0>)), tensor<float, 0, 0>>);
  CHECK(same(any_tensor(slice(x, at<0, 2>, shape<dyn, 3>)), slice(x, {0, 2}, {dyn, 3})));
  any_tensor y = any(dtype::int32, {4, 5});
  CHECK(same(slice(y, {0, 0}, {4, 5}), y));
  CHECK(type_of(slice(y, at<1, 0>, shape<dyn, 2>)) == "int32(3,2)");
}

TEST_CASE_FIXTURE(testing::own_graph, "pads add extents before and after") {
  placeholder<float, dyn, 3> x("x");
  static_assert(std::is_same_v<decltype(pad(x, before<0, 1>, after<0, 2>)), tensor<float, dyn, 6>>);
  static_assert(std::is_same_v<decltype(pad(x, before<1, 0>, after<0, 0>)), tensor<float, dyn, 3>>);
  CHECK(same(any_tensor(pad(x, before<0, 1>, after<0, 2>, -1)), pad(x, {0, 1}, {0, 2}, -1)));
  any_tensor y = any(dtype::uint8, {4});
  CHECK(same(pad(y, {0}, {0}), y));
  CHECK(type_of(pad(y, {1}, {2}, 255)) == "uint8(7)");
}

TEST_CASE_FIXTURE(testing::own_graph, "splits and stacks have the types of their parts") {
  placeholder<float, dyn, 12> x("x");
  placeholder<float, 5, 12> z("z");
  static_assert(
      std::is_same_v<decltype(split<3>(x, axis<1>)), std::array<tensor<float, dyn, 4>, 3>>);
  static_assert(std::is_same_v<decltype(split<5>(z, axis<-2>))::value_type, tensor<float, 1, 12>>);
  static_assert(std::is_same_v<decltype(unstack(z, axis<0>)), std::array<tensor<float, 12>, 5>>);
  static_assert(std::is_same_v<decltype(stack(axis<1>, x, z, x)), tensor<float, 5, 3, 12>>);
  static_assert(std::is_same_v<decltype(stack(axis<-1>, x, x)), tensor<float, dyn, 12, 2>>);
  auto [a, b, c] = split<3>(x, axis<1>);
  CHECK(same(any_tensor(b), slice(x, {0, 4}, {dyn, 4})));
  const std::vector<any_tensor> parts = split(x, axis<1>, 3);
  CHECK(parts.size() == 3);
  CHECK(same(any_tensor(c), parts[2]));
  CHECK(same(split<3>(any_tensor(x), axis<1>)[0], any_tensor(a)));
  CHECK(same(split(x, axes{-1}, 3)[1], any_tensor(b)));
  CHECK(type_of(unstack(any_tensor(x), axis<1>)[11]) == "float(?)");
  CHECK(unstack(z, axes{1}).size() == 12);
  CHECK(same(any_tensor(stack(axis<1>, x, z)), stack(axes{1}, std::vector<any_tensor>{x, z})));
}

TEST_CASE_FIXTURE(testing::own_graph, "errors of slice, pad, split, stack and unstack") {
  any_tensor x = any(dtype::float32, {4, dyn}), i = any(dtype::int32, {4, dyn});
  check_error(
      [&] {
        slice(x, {1, 0}, {4, 2});
      },
      "[slice] (4,?) has no part of size (4,2) at (1,0)");
  check_error([&] { slice(x, {5, 0}, {dyn, 2}); }, "[slice] (4,?) has no part of size (?,2)");
  check_error([&] { slice(x, {0}, {2}); }, "[slice] (4,?) has no part of size (2) at (0)");
  check_error(
      [&] {
        slice(x, {-1, 0}, {1, 1});
      },
      "[slice] (4,?) has no part of size (1,1) at (-1,0)");
  check_error([&] { pad(x, {1}, {1}); },
              "[pad] expects numbers of elements before and after each axis of (4,?), and got (1) "
              "and (1)");
  check_error(
      [&] {
        pad(x, {0, -1}, {0, 0});
      },
      "[pad] expects numbers of elements before and after each axis of (4,?), and got (0,-1) "
      "and (0,0)");
  check_error([&] { pad(i, {1, 1}, {0, 0}, 0.5); }, "[pad] 0.5 does not fit int32");
  check_error([&] { pad(i, {1, 1}, {0, 0}, 3e9); }, "[pad] 3e+09 does not fit int32");
  check_error([&] { pad(i, {0, 0}, {0, 0}, 0.5); }, "[pad] 0.5 does not fit int32");
  check_error([&] { pad(x, {1, 1}, {0, 0}, 1e300); }, "[pad] 1e+300 does not fit float");
  check_error([&] { split(x, axes{1}, 2); },
              "[split] expects an axis whose extent is known and a multiple of the 2 parts, and "
              "got axis 1 of (4,?)");
  check_error([&] { split<3>(x, axis<0>); }, "[split] expects an axis whose extent is known");
  check_error([&] { split(x, axes{2}, 2); }, "[split] expects one axis of a tensor of rank 2");
  check_error(
      [&] {
        split(x, axes{-1, 0}, 2);
      },
      "[split] expects one axis of a tensor of rank 2, and got (-1,0)");
  check_error([&] { unstack(x, axis<1>); },
              "[unstack] expects one axis whose extent is known, and got (1) of (4,?)");
  check_error([&] { stack(axis<0>, x, i); },
              "[stack] expects tensors of one dtype and shape, and got float(4,?) and int32(4,?)");
  check_error([&] { stack(axis<3>, x, x); }, "[stack] expects an axis of a result of rank 3");
  check_error(
      [&] { stack(axes{0}, {}); },
      "[stack] expects one axis and one tensor at least, and got 1 and 0, node \"stack\" at "
      "test_slice.cpp:");
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "gradients of parts that follow each other are concatenated") {
  placeholder<float, dyn, 12> x("x");
  auto gradient = [&](const any_tensor& loss) {
    return any_tensor(plan::gradients(loss, std::vector<any_tensor>{x})[0]);
  };
  auto name = [](const any_tensor& t) { return maker(t).def->name; };
  auto [a, b, c] = split<3>(x, axis<1>);
  CHECK(name(gradient(sum(exp(a)) + sum(exp(c)) + sum(exp(b)))) == "concat");
  const any_tensor some = gradient(sum(exp(b)) + sum(exp(c)));
  CHECK(name(some) == "pad");
  CHECK(name(any_tensor(maker(some).inputs()[0])) == "concat");
  CHECK(type_of(some) == "float(?,12)");
  CHECK(name(gradient(sum(exp(a)) + sum(exp(c)))) == "add");
  CHECK(name(gradient(sum(exp(a)) + sum(exp(slice(x, at<0, 2>, shape<dyn, 4>))))) == "add");
  auto columns = unstack(x, axis<1>);
  any_tensor total = sum(exp(columns[0]));
  for (int i = 1; i < 12; ++i) total = total + sum(exp(columns[static_cast<std::size_t>(i)]));
  CHECK(name(gradient(total)) == "concat");
  CHECK(maker(gradient(total)).inputs().size() == 12);
}
