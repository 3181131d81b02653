// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deft/core/hash.hpp>
#include <deft/core/num_text.hpp>
#include <deft/core/philox.hpp>
#include <deft/op/catalog.hpp>
#include <set>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::maker;

TEST_CASE("the catalog lists every operation once") {
  std::set<std::string_view> names;
  op::catalog::each([&]<class Op>() { CHECK(names.insert(Op::name).second); });
  CHECK(names.size() == op::catalog::size);
  CHECK(catalog_ops().size() == op::catalog::size);
  for (const op_def* d : catalog_ops()) CHECK(find_op(d->name) == d);
  CHECK(find_op("matmul") == &record_of<op::matmul>);
  CHECK(find_op("no such operation") == nullptr);
}

TEST_CASE("attributes can be encoded and decoded") {
  op::random_uniform o;
  o.shape = {2, 3};
  o.key = ~std::uint64_t{0};
  o.high = 0.1;
  auto back = decode<op::random_uniform>(encode(o));
  CHECK(back.key == o.key);
  CHECK(back.high == 0.1);
  CHECK(back.shape == o.shape);
  CHECK(record_of<op::random_uniform>.attributes.size() == 6);
  CHECK(record_of<op::random_uniform>.attributes[3] == "high");
}

namespace {

/// The text of Op's body for operands of these names.
template <class Op, class... Name>
void check_text(const Name&... names) {
  CAPTURE(Op::name);
  const std::string source = Op()(num::text(names)...).s;
  CAPTURE(source);
  CHECK(source.size() > 2);
  CHECK(source.back() == ')');
  CHECK(std::count(source.begin(), source.end(), '(') ==
        std::count(source.begin(), source.end(), ')'));
  for (std::string_view name : {std::string_view(names)...})
    CHECK(source.find(name) != std::string::npos);
}

}  // namespace

TEST_CASE("the body of every elementwise operation yields its source text") {
  int bodies = 0;
  op::catalog::each([&]<class Op>() {
    if constexpr (std::is_same_v<Op, op::cast>) {
      check_text<op::cast_to<float>>("first");
    } else if constexpr (requires { Op::typing_rule; }) {
      if constexpr (Op::arity == 1)
        check_text<Op>("first");
      else if constexpr (Op::arity == 2)
        check_text<Op>("first", "second");
      else
        check_text<Op>("first", "second", "third");
    } else {
      return;
    }
    ++bodies;
  });
  int elementwise = 0;
  for (const op_def* d : catalog_ops())
    if (d->is(op_traits::elementwise)) ++elementwise;
  CHECK(bodies == elementwise);
}

namespace {

/// Attributes and inputs that no builder makes.
class hostile {
 public:
  explicit hostile(std::uint32_t seed) : key_{seed, 1} {}

  std::uint32_t below(std::uint32_t n) { return next() % n; }
  std::int64_t number() {
    static constexpr std::int64_t odd[] = {0,
                                           1,
                                           2,
                                           3,
                                           -1,
                                           -2,
                                           -3,
                                           -9,
                                           7,
                                           8,
                                           INT64_MIN,
                                           INT64_MAX,
                                           INT64_MIN + 1,
                                           std::int64_t{1} << 32,
                                           std::int64_t{1} << 62,
                                           1000000007};
    return below(4) ? odd[below(4)] : odd[below(std::size(odd))];
  }
  dims shape() {
    dims d;
    for (auto n = below(max_rank + 1); n > 0; --n) d.push_back(below(8) ? below(4) : number());
    return d;
  }
  /// A valid type, as the result of another node.
  dims sound_shape() {
    for (;;)
      if (dims d = shape(); is_sound(d)) return d;
  }
  tensor_type type() { return {sound_shape(), every_dtype[below(every_dtype.size())]}; }
  attr_value attribute(const attr_value* proper) {
    if (proper && below(3)) {
      if (std::holds_alternative<std::int64_t>(*proper)) return number();
      if (std::holds_alternative<integers>(*proper)) return list();
      return *proper;
    }
    switch (below(6)) {
      case 0:
        return number();
      case 1:
        return below(2) ? 0.5 : -1e308 * 10;
      case 2:
        return std::string(below(3), 'x');
      case 3:
        return list();
      case 4:
        return below(2) ? any_array() : any_array(dtype::float32, shape(), buffer::host(8));
      default:
        return program_ref(below(2) ? std::make_shared<program>() : nullptr);
    }
  }

 private:
  std::uint32_t next() { return philox({count_++, 0, 0, 0}, key_)[0]; }
  integers list() {
    integers v;
    for (auto n = below(10); n > 0; --n) v.push_back(number());
    return v;
  }
  std::array<std::uint32_t, 2> key_;
  std::uint32_t count_ = 0;
};

}  // namespace

TEST_CASE("shape rules refuse hostile attributes and inputs") {
  std::size_t passed = 0, refused = 0;
  op::catalog::each([&]<class Op>() {
    CAPTURE(Op::name);
    hostile h(static_cast<std::uint32_t>(hash_text(Op::name)));
    const attr_list proper = encode(Op{});
    std::vector<tensor_type> in, out;
    for (int i = 0; i < 3000; ++i) {
      const op_def& def = record_of<Op>;
      int inputs = def.max_inputs < 0
                       ? static_cast<int>(h.below(5))
                       : def.min_inputs + static_cast<int>(h.below(static_cast<std::uint32_t>(
                                              def.max_inputs - def.min_inputs + 1)));
      in.clear();
      tensor_type one = h.type();
      for (int k = 0; k < inputs; ++k) in.push_back(h.below(2) ? one : h.type());
      std::vector<attr_value> attributes;
      for (const auto& a : proper) attributes.push_back(h.attribute(h.below(8) ? &a : nullptr));
      try {
        infer_types(def, {in, attributes}, out);
        ++passed;
        for (const auto& t : out) {
          CHECK(is_sound(t.shape));
          CHECK(is_valid(t.type));
        }
      } catch (const error& e) {
        ++refused;
        if (e.code() != errc::invalid_argument || e.message().empty()) FAIL(e.what());
      }
    }
  });
  CHECK(passed > 10'000);
  CHECK(refused > 10'000);
}

TEST_CASE("a fused node must fit its program") {
  testing::own_graph own;
  placeholder<float, 3> x("x");
  tensor<float, 3> y = x * 2 + 1;
  const node& n = maker(y);
  auto o = decode<op::fused>(n.attributes);
  auto check = [&](const op::fused& f, std::vector<tensor_type> in, std::string_view text) {
    std::vector<tensor_type> out;
    std::string e = testing::error_of([&] { infer_types(*n.def, {in, encode(f)}, out); });
    INFO(e);
    CHECK(e.starts_with("invalid_argument: " + std::string(text)));
  };
  tensor_type f3{{3}, dtype::float32};
  check(o, {}, "[fused] the program takes 1 inputs, not 0");
  check(o, {{{3}, dtype::int32}}, "[fused] input 0 is int32, not float");
  auto fewer = o;
  fewer.immediates.pop_back();
  check(fewer, {f3}, "[fused] the program takes 2 immediates, not 1");
  auto broken = std::make_shared<program>(*o.program);
  broken->code[0].args[0] = 99;
  check({broken, o.immediates}, {f3}, "[fused] instruction 0 uses value 99 before it is computed");
  auto empty = std::make_shared<program>();
  check({empty, {}}, {}, "[fused] a program without instructions");
}
