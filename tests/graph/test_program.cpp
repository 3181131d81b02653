// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <deft/graph/op_def.hpp>
#include <deft/op/catalog.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/fused_update.hpp>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

constexpr auto each = extent_class::element, row = extent_class::row, column = extent_class::column,
               whole = extent_class::whole;
constexpr auto f32 = dtype::float32;

instruction map(const op_def& op, std::initializer_list<std::uint16_t> args, dtype t = f32) {
  instruction i;
  i.op = &op;
  i.type = t;
  for (auto a : args) i.args[i.count++] = a;
  return i;
}
instruction fold(const op_def& op, extent_class leaves, std::uint16_t arg) {
  instruction i = map(op, {arg});
  i.leaves = leaves;
  return i;
}

/// exp(x - max) / sum(exp(x - max)) along rows.
program softmax() {
  program r;
  r.inputs = {f32};
  r.code = {fold(record_of<op::max>, row, 0), map(record_of<op::sub>, {0, 1}),
            map(record_of<op::exp>, {2}), fold(record_of<op::sum>, row, 3),
            map(record_of<op::div>, {3, 4})};
  r.outputs = {{5, each, false}};
  r.row_axes = 1;
  r.seal();
  return r;
}
std::string fault(const program& r) {
  return testing::error_of([&] { validate(r); });
}

}  // namespace

TEST_CASE("a use of a fold needs another pass over the row") {
  const program r = softmax();
  CHECK_NOTHROW(validate(r));
  const extent_class in[] = {each};
  const region_shape s = shape_of(r, in);
  CHECK(s.phases == 3);
  CHECK(s.phase == std::vector<std::uint8_t>{0, 1, 1, 1, 2, 2});
  CHECK(s.where[1] == row);
  CHECK(s.where[5] == each);
}

TEST_CASE("a value's class is the join of its operands' classes") {
  CHECK(join(row, column) == each);
  CHECK(join(whole, row) == row);
  CHECK(join(row, row) == row);
  CHECK(join(column, whole) == column);
  CHECK(join(each, row) == each);
  // What is computed from columns has a value for each element; rows cannot be folded.
  program r;
  r.inputs = {f32, f32};
  r.code = {map(record_of<op::exp>, {0}), map(record_of<op::exp>, {1})};
  r.outputs = {{2, each, false}};
  r.row_axes = 1;
  const extent_class in[] = {column, row};
  CHECK(shape_of(r, in).where == std::vector<extent_class>{column, row, each, row});
  r.code.push_back(fold(record_of<op::sum>, row, 3));
  CHECK(testing::error_of([&] { shape_of(r, in); }).find("the same along what is folded") !=
        std::string::npos);
  r.code.back().args[0] = 0;
  CHECK(testing::error_of([&] { shape_of(r, in); }).find("the same along what is folded") !=
        std::string::npos);
  r.code.pop_back();
  r.outputs[0].where = row;
  CHECK(testing::error_of([&] { shape_of(r, in); }).find("is not of the declared class") !=
        std::string::npos);
}

TEST_CASE("different regions have different signatures") {
  const program r = softmax();
  CHECK(r.signature ==
        "t0=max_row(i0:float):float t1=sub(i0:float,t0):float t2=exp(t1):float "
        "t3=sum_row(t2):float t4=div(t2,t3):float out t4 rows of 1");
  program other = r;
  other.outputs = {{4, row, true}};
  other.seal();
  CHECK(other.signature != r.signature);
  CHECK(other.hash != r.hash);
}

TEST_CASE("a region is the same in any order of writing") {
  program one, other;
  one.inputs = other.inputs = {f32, f32};
  one.immediates = other.immediates = {f32};
  one.code = {map(record_of<op::exp>, {0}), map(record_of<op::mul>, {1, 2}),
              map(record_of<op::add>, {4, 3}), map(record_of<op::exp>, {5})};
  one.outputs = {{6, each, false}, {3, each, false}};
  other.code = {map(record_of<op::mul>, {1, 2}), map(record_of<op::exp>, {0}),
                map(record_of<op::add>, {3, 4}), map(record_of<op::exp>, {5})};
  other.outputs = {{6, each, false}, {4, each, false}};
  other.pieces = {{0, 2}};
  one.seal(), other.seal();
  CHECK(one.signature != other.signature);
  CHECK(canonical(one).signature == canonical(other).signature);
  CHECK(canonical(one).signature ==
        "t0=mul(i1:float,k0:float):float t1=exp(i0:float):float t2=add(t0,t1):float "
        "t3=exp(t2):float out t3 out t1");
  CHECK(canonical(other).pieces.empty());
  // The order of the results is part of it.
  std::swap(other.outputs[0], other.outputs[1]);
  CHECK(canonical(one).signature != canonical(other).signature);
}

TEST_CASE("an invalid program is refused by naming its fault") {
  program r = softmax();
  r.code[1].args[1] = 7;
  CHECK(fault(r) == "invalid_argument: [fused] instruction 1 uses value 7 before it is computed");
  r = softmax();
  r.code[0].leaves = column;
  CHECK(
      fault(r).find("instruction 1 uses a fold over all or over columns, which is a result only") !=
      std::string::npos);
  r = softmax();
  r.code[0].leaves = static_cast<extent_class>(9);
  CHECK(fault(r).find("instruction 0 (max) is not a fold") != std::string::npos);
  r = softmax();
  r.code[0].op = &record_of<op::exp>;
  CHECK(fault(r).find("instruction 0 (exp) is not a fold") != std::string::npos);
  r = softmax();
  r.code[2].type = dtype::int32;
  CHECK(fault(r).find("instruction 2 (exp) gives float, not int32") != std::string::npos);
  r = softmax();
  r.code[2].op = &record_of<op::matmul>;
  CHECK(fault(r).find("instruction 2 is not elementwise") != std::string::npos);
  r = softmax();
  r.code[2].op = &record_of<op::sum>;
  CHECK(fault(r).find("instruction 2 is not elementwise") != std::string::npos);
  r = softmax();
  r.outputs.clear();
  CHECK(fault(r).find("instruction 0 (max) folds rows in an expression") != std::string::npos);
  r = softmax();
  r.row_axes = 0;
  CHECK(fault(r).find("(max) folds rows in a region without rows") != std::string::npos);
  r = softmax();
  r.code[3].leaves = whole;
  CHECK(fault(r).find("(sum) folds all in a region of rows") != std::string::npos);
  r.row_axes = 0;
  r.code[0].leaves = column;
  CHECK(fault(r).find("(max) folds columns in a region without rows") != std::string::npos);
  r.code = {map(record_of<op::exp>, {0}), fold(record_of<op::sum>, whole, 1),
            map(record_of<op::exp>, {2})};
  CHECK(fault(r).find("uses a fold over all or over columns, which") != std::string::npos);
  r = softmax();
  r.code.push_back(fold(record_of<op::max>, column, 0));
  CHECK(fault(r).find("folds columns or all, and is not a result") != std::string::npos);
  r = softmax();
  r.row_axes = max_rank + 1;
  CHECK(fault(r).find("rows of 9 axes") != std::string::npos);
  r = softmax();
  r.outputs[0].value = 0;
  CHECK(fault(r).find("value 0 is not a result") != std::string::npos);
  r.outputs = {{5, each, false}, {5, each, false}};
  CHECK(fault(r).find("value 5 is a result twice") != std::string::npos);
  r.outputs.assign(9, {5, each, false});
  CHECK(fault(r).find("at most 8 results, not 9") != std::string::npos);
  r = softmax();
  r.outputs[0] = {4, each, false};
  CHECK(fault(r).find("value 4 is a result of another class") != std::string::npos);
  for (auto wrong : {column, whole, static_cast<extent_class>(7)}) {
    r.outputs[0] = {5, wrong, false};
    CHECK(fault(r).find("value 5 is a result of another class") != std::string::npos);
  }
  r = softmax();
  r.pieces = {{3, 4}};
  CHECK(fault(r).find("instruction 3 is a fold within an expression") != std::string::npos);
  r = softmax();
  r.pieces = {{1, 3}};
  CHECK_NOTHROW(validate(r));
  r.outputs.push_back({2, each, false});
  CHECK(fault(r).find("instruction 1 is not used within its expression alone") !=
        std::string::npos);
  r = softmax();
  r.code.assign(65, map(record_of<op::exp>, {0}));
  CHECK(fault(r).find("a program of 65 operations, more than 64") != std::string::npos);
}

TEST_CASE("regions have no late literals") {
  program r;
  r.inputs = {f32};
  r.immediates = {f32};
  r.code = {map(record_of<op::mul>, {0, 1}), map(record_of<op::exp>, {2})};
  r.outputs = {{2, each, false}, {3, each, false}};
  r.seal();
  const auto p = std::make_shared<const program>(r);
  const tensor_type x{{4}, f32}, literal{{}, f32};
  const op::fused f{p, {0}};
  CHECK(f.infer(std::vector{x}).size() == 2);
  CHECK(testing::error_of([&] {
          f.infer(std::vector{x, literal});
        }).find("the program takes 1 inputs, not 2") != std::string::npos);
}

TEST_CASE("an update does not write what it still reads") {
  // s = s + g * g; w = w - g / s.
  program r;
  r.inputs = {f32, f32, f32};
  r.code = {map(record_of<op::mul>, {2, 2}), map(record_of<op::add>, {1, 3}),
            map(record_of<op::div>, {2, 4}), map(record_of<op::sub>, {0, 5})};
  r.outputs = {{6, each, false}, {4, each, false}};
  const tensor_type v{{4}, f32};
  auto update = [&] {
    r.seal();
    return op::fused_update{{"c", "c"}, {"w", "s"}, {4}, {}, std::make_shared<const program>(r),
                            {}};
  };
  auto refused = [&](const op::fused_update& u, const std::vector<tensor_type>& in) {
    return testing::error_of([&] { u.infer(in); });
  };
  CHECK(update().infer(std::vector{v}) == std::vector{v, v});
  CHECK(update().resources().at(1).key == resource_key{"variable", "c", "s"});
  CHECK(refused(update(), {v, v}).find("the program takes 3 inputs, not 4") != std::string::npos);
  CHECK(refused(update(), {{{5}, f32}}) != "");
  auto u = update();
  u.names[1] = "w";
  CHECK(refused(u, {v}).find("variable \"w\" occurs twice") != std::string::npos);
  u.names.pop_back();
  CHECK(refused(u, {v}).find("1 variables in 2 containers") != std::string::npos);
  u.containers.pop_back();
  CHECK(refused(u, {v, v}).find("2 results for 1 variable") != std::string::npos);
  r.code[2].args[0] = 1;
  CHECK(refused(update(), {v}).find("the old value of variable 1 is used after its new one") !=
        std::string::npos);
  r.code[2].args[0] = 2;
  r.outputs[1] = {0, each, false};
  CHECK(refused(update(), {v}) != "");
}

TEST_CASE("an extracted part equals the same program written separately") {
  const program r = softmax();
  // The second phase, of which the last one needs a value: an expression.
  const std::uint16_t e[] = {3};
  program_part p = extract(r, e, [](std::uint16_t v) { return v < 2; });
  CHECK(p.program->signature == "t0=sub(i0:float,i1:float):float t1=exp(t0):float");
  CHECK(p.operands == std::vector<std::uint16_t>{0, 1});
  // Two values: a region without folds.
  const std::uint16_t both[] = {3, 2};
  p = extract(r, both, [](std::uint16_t v) { return v < 2; });
  CHECK(p.program->is_region());
  CHECK(p.program->code.size() == 2);
  CHECK(p.program->outputs.size() == 2);
  CHECK_NOTHROW(validate(*p.program));
}

TEST_CASE("an expression within an extracted part stays a piece, its operands first") {
  program r;
  r.inputs = {f32, f32};
  // a = x * y + x; b = exp(a) - y * a, in two pieces.
  r.code = {map(record_of<op::mul>, {0, 1}), map(record_of<op::add>, {2, 0}),
            map(record_of<op::exp>, {3}), map(record_of<op::mul>, {1, 3}),
            map(record_of<op::sub>, {4, 5})};
  r.pieces = {{0, 2}, {2, 5}};
  r.seal();
  const std::uint16_t both[] = {6, 3};
  const program_part p = extract(r, both, [](std::uint16_t v) { return v < 2; });
  CHECK(p.program->pieces == r.pieces);
  CHECK_NOTHROW(validate(*p.program));
  // A piece is dropped if one of its inner values becomes a result.
  const std::uint16_t inner[] = {4, 6};
  CHECK(extract(r, inner, [](std::uint16_t v) { return v < 2; }).program->pieces ==
        std::vector<program_piece>{{0, 2}});
}
