// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <deft/graph/region.hpp>
#include <deft/op/catalog.hpp>

#include "testing.hpp"

using namespace deft;

namespace {

using in = region::instruction;
constexpr auto f32 = dtype::float32;

in map(const op_def& op, std::initializer_list<std::uint16_t> args, dtype t = f32) {
  in i;
  i.op = &op;
  i.type = t;
  for (auto a : args) i.args[i.count++] = a;
  return i;
}
in fold(fold_kind kind, extent_class to, std::uint16_t arg) {
  in i;
  i.type = f32;
  i.args[i.count++] = arg;
  i.fold = kind;
  i.to = to;
  return i;
}

/// exp(x - max) / sum(exp(x - max)) along rows.
region softmax() {
  region r;
  r.inputs = {{f32, extent_class::element}};
  r.code = {fold(fold_kind::max, extent_class::row, 0), map(record_of<op::sub>, {0, 1}),
            map(record_of<op::exp>, {2}), fold(fold_kind::sum, extent_class::row, 3),
            map(record_of<op::div>, {3, 4})};
  r.outputs = {{5}};
  return r;
}
/// w -= rate * dw
region update() {
  region r;
  r.inputs = {{f32, extent_class::element}, {f32, extent_class::element}};
  r.immediates = {f32};
  r.code = {map(record_of<op::mul>, {1, 2}), map(record_of<op::sub>, {0, 3})};
  r.outputs = {{4, 0}};
  return r;
}
std::string fault(const region& r) {
  return testing::error_of([&] { static_cast<void>(check(r)); });
}

}  // namespace

TEST_CASE("a row is passed over again by what uses its fold") {
  const region_shape s = check(softmax());
  CHECK(s.phases == 3);
  CHECK(s.phase == std::vector<std::uint8_t>{0, 1, 1, 1, 2, 2});
  CHECK(s.where[1] == extent_class::row);
  CHECK(s.where[5] == extent_class::element);
}

TEST_CASE("a value's class is the join of its operands'") {
  using enum extent_class;
  CHECK(join(row, column) == element);
  CHECK(join(whole, row) == row);
  CHECK(join(row, row) == row);
  CHECK(join(column, whole) == column);
  CHECK(join(element, row) == element);
}

TEST_CASE("a variable is updated in place, unless it is read again later") {
  CHECK(check(update()).phases == 1);
  region r = update();
  r.outputs = {{4, 0}, {3, 0}};
  CHECK(fault(r) == "invalid_argument: [region] two results are written over input 0");
  r = softmax();
  r.code.push_back(map(record_of<op::add>, {2, 0}));  // x again, in the phase after the first
  r.outputs = {{6, 0}};
  CHECK(check(r).phases == 3);
  r.code.push_back(map(record_of<op::add>, {5, 0}));  // and in the last one
  CHECK(fault(r) == "invalid_argument: [region] input 0 is read again after it is written over");
  r = update();
  r.inputs[0].where = extent_class::row;
  CHECK(fault(r) ==
        "invalid_argument: [region] a result is written over input 0, which has another dtype or "
        "class");
}

TEST_CASE("what is not sound is named") {
  region r = softmax();
  r.code[1].args[1] = 7;
  CHECK(fault(r) == "invalid_argument: [region] instruction 1 uses value 7 before it is there");
  r = softmax();
  r.code[0].to = extent_class::column;
  CHECK(fault(r).find("is a result only") != std::string::npos);
  r = softmax();
  r.code[3].args[0] = 1;
  CHECK(fault(r).find("fold 3 is of a value that is the same along what is folded") !=
        std::string::npos);
  r = softmax();
  r.code[2].type = dtype::int32;
  CHECK(fault(r).find("instruction 2 (exp) gives float, not int32") != std::string::npos);
  r = softmax();
  r.code[2].op = &record_of<op::matmul>;
  CHECK(fault(r).find("instruction 2 is not elementwise") != std::string::npos);
  r = softmax();
  r.outputs.clear();
  CHECK(fault(r).find("has 1 to 8 results, not 0") != std::string::npos);
  r.outputs = {{0}};
  CHECK(fault(r).find("value 0 is no result") != std::string::npos);
  r = softmax();
  r.code.assign(65, map(record_of<op::exp>, {0}));
  CHECK(fault(r).find("a region of 65 operations, more than 64") != std::string::npos);
}
