// SPDX-License-Identifier: Apache-2.0
#include "op/cases.hpp"

#include <algorithm>
#include <deft/op/catalog.hpp>
#include <deft/session/session.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "kernels/arrays.hpp"
#include "op/modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::op_case;
using tensors = std::vector<any_tensor>;

namespace {

/// What a case tests: an operation of the catalog, or a function that writes several.
struct tested {
  const op_def* def = nullptr;
  std::vector<std::string> names;  ///< of the attributes
  std::vector<attr_value> proper;  ///< attributes that a case does not state
  std::function<tensors(const tensors&, const std::vector<attr_value>&)> write;
};

dims dims_in(const attr_value& v) { return dims(std::get<integers>(v)); }

tensors write(const op_def& def, const tensors& in, std::vector<attr_value> attributes) {
  std::vector<output> inputs;
  for (const any_tensor& x : in) inputs.push_back(x.handle());
  const node_ref n = current_graph().add({.def = &def,
                                          .attributes = make_attributes(attributes),
                                          .inputs = inputs,
                                          .location = here()});
  tensors out;
  for (std::uint32_t i = 0; i < n->outputs.size(); ++i) out.push_back(any_tensor(output{n, i}));
  return out;
}

const std::map<std::string, tested>& all_tested() {
  static const std::map<std::string, tested> all = [] {
    std::map<std::string, tested> m;
    op::catalog::each([&]<class Op>() {
      const op_def& def = *find_op(Op::name);
      tested t{&def, {def.attributes.begin(), def.attributes.end()}, {}, {}};
      for (const auto& a : encode(Op{})) t.proper.push_back(a);
      t.write = [&def](const tensors& in, const std::vector<attr_value>& attributes) {
        return write(def, in, attributes);
      };
      m.emplace(Op::name, std::move(t));
    });
    const std::vector<attr_value> axis{std::int64_t{0}};
    const auto number = [](const std::vector<attr_value>& a, std::size_t i) {
      return std::get<std::int64_t>(a[i]);
    };
    const auto moving = [&](const char* name, std::vector<std::string> names,
                            std::vector<attr_value> proper, auto write) {
      m[name] = {nullptr, std::move(names), std::move(proper),
                 [=](auto& in, auto& a) { return tensors{write(in[0], a)}; }};
    };
    const attr_value zero = std::int64_t{0}, list = integers{};
    const auto axes_in = [](const attr_value& v) { return axes(dims_in(v)); };
    moving("flip", {"axes"}, {list}, [=](auto& x, auto& a) { return flip(x, axes_in(a[0])); });
    moving("flatten", {"axis"}, {zero},
           [=](auto& x, auto& a) { return flatten(x, axes{number(a, 0)}); });
    moving("move_axis", {"from", "to"}, {list, list},
           [=](auto& x, auto& a) { return move_axis(x, axes_in(a[0]), axes_in(a[1])); });
    moving("pad_edge", {"before", "after"}, {list, list},
           [](auto& x, auto& a) { return pad(x, dims_in(a[0]), dims_in(a[1]), pad_mode::edge); });
    moving("pad_reflect", {"before", "after"}, {list, list}, [](auto& x, auto& a) {
      return pad(x, dims_in(a[0]), dims_in(a[1]), pad_mode::reflect);
    });
    moving("repeat", {"axis", "times"}, {zero, zero},
           [=](auto& x, auto& a) { return repeat(x, axes{number(a, 0)}, number(a, 1)); });
    moving("roll", {"shift", "axis"}, {zero, zero},
           [=](auto& x, auto& a) { return roll(x, number(a, 0), axes{number(a, 1)}); });
    moving("squeeze", {"axes"}, {list},
           [=](auto& x, auto& a) { return squeeze(x, axes_in(a[0])); });
    moving("swap_axes", {"axes"}, {list},
           [=](auto& x, auto& a) { return swap_axes(x, axes_in(a[0])); });
    moving("tile", {"times"}, {list}, [](auto& x, auto& a) { return tile(x, dims_in(a[0])); });
    const auto unary = [&](const char* name, any_tensor (*f)(const any_tensor&)) {
      m[name] = {nullptr, {}, {}, [=](auto& in, auto&) { return tensors{f(in[0])}; }};
    };
    unary("reciprocal", [](const any_tensor& x) { return reciprocal(x); });
    unary("rsqrt", [](const any_tensor& x) { return rsqrt(x); });
    unary("isnan", [](const any_tensor& x) { return isnan(x); });
    unary("isinf", [](const any_tensor& x) { return isinf(x); });
    unary("isfinite", [](const any_tensor& x) { return isfinite(x); });
    m["elu"] = {nullptr, {"alpha"}, {1.}, [](auto& in, auto& a) {
                  return tensors{elu(in[0], std::get<double>(a[0]))};
                }};
    m["leaky_relu"] = {nullptr, {"slope"}, {0.01}, [](auto& in, auto& a) {
                         return tensors{leaky_relu(in[0], std::get<double>(a[0]))};
                       }};
    m["clip"] = {
        nullptr, {}, {}, [](auto& in, auto&) { return tensors{clip(in[0], in[1], in[2])}; }};
    const auto reduction = [&](const char* name, auto add) {
      m[name] = {
          nullptr, {"axes", "keepdims"}, {integers{}, std::int64_t{0}}, [=](auto& in, auto& a) {
            const axes over(dims_in(a[0]));  // none: all
            return tensors{
                add(in[0], over.value.empty() ? nullptr : &over, number(a, 1) != 0, here())};
          }};
    };
    reduction("logsumexp", &detail::add_logsumexp);
    reduction("variance", &detail::add_variance);
    reduction("sample_variance", &detail::add_sample_variance);
    reduction("standard_deviation", &detail::add_deviation);
    reduction("sample_standard_deviation", &detail::add_sample_deviation);
    reduction("reduce_any", &detail::add_reduce_any);
    reduction("reduce_all", &detail::add_reduce_all);
    m["masked_softmax"] = {nullptr, {"axis"}, {std::int64_t{-1}}, [=](auto& in, auto& a) {
                             return tensors{softmax(in[0], axes{number(a, 0)}, in[1])};
                           }};
    const std::vector<attr_value> last{std::int64_t{-1}, std::int64_t{0}};
    const auto order = [=](const std::vector<attr_value>& a) {
      return sort_options{.descending = number(a, 1) != 0};
    };
    m["sort_along"] = {nullptr, {"axis", "descending"}, last, [=](auto& in, auto& a) {
                         return tensors{sort(in[0], axes{number(a, 0)}, order(a))};
                       }};
    m["argsort"] = {nullptr, {"axis", "descending"}, last, [=](auto& in, auto& a) {
                      return tensors{argsort(in[0], axes{number(a, 0)}, order(a))};
                    }};
    m["take_along"] = {nullptr, {"axis"}, axis, [=](auto& in, auto& a) {
                         return tensors{take_along(in[0], in[1], axes{number(a, 0)})};
                       }};
    m["gather_along"] = {nullptr, {"axis"}, axis, [=](auto& in, auto& a) {
                           return tensors{gather(in[0], in[1], axes{number(a, 0)})};
                         }};
    m["scatter_add_to"] = {
        nullptr, {}, {}, [](auto& in, auto&) { return tensors{scatter_add(in[0], in[2], in[1])}; }};
    m["tril"] = {nullptr, {"diagonal"}, axis, [=](auto& in, auto& a) {
                   return tensors{tril(in[0], number(a, 0))};
                 }};
    m["triu"] = {nullptr, {"diagonal"}, axis, [=](auto& in, auto& a) {
                   return tensors{triu(in[0], number(a, 0))};
                 }};
    m["eye"] = {
        nullptr, {"rows", "columns"}, {std::int64_t{0}, std::int64_t{0}}, [=](auto&, auto& a) {
          return tensors{eye(number(a, 0), number(a, 1))};
        }};
    m["linspace"] = {
        nullptr, {"begin", "end", "n"}, {0., 0., std::int64_t{0}}, [=](auto&, auto& a) {
          return tensors{linspace(std::get<double>(a[0]), std::get<double>(a[1]), number(a, 2))};
        }};
    m["expand_dims"] = {nullptr, {"axes"}, {integers{}}, [](auto& in, auto& a) {
                          return tensors{expand_dims(in[0], axes(dims_in(a[0])))};
                        }};
    m["log_softmax"] = {nullptr, {"axis"}, {std::int64_t{-1}}, [=](auto& in, auto& a) {
                          return tensors{log_softmax(in[0], axes{number(a, 0)})};
                        }};
    m["split"] = {
        nullptr, {"axis", "parts"}, {std::int64_t{0}, std::int64_t{1}}, [=](auto& in, auto& a) {
          return split(in[0], axes{number(a, 0)}, number(a, 1));
        }};
    m["stack"] = {nullptr, {"axis"}, axis, [=](auto& in, auto& a) {
                    return tensors{stack(axes{number(a, 0)}, in)};
                  }};
    m["unstack"] = {nullptr, {"axis"}, axis, [=](auto& in, auto& a) {
                      return unstack(in[0], axes{number(a, 0)});
                    }};
    return m;
  }();
  return all;
}

const tested& tested_by(const op_case& c) {
  const auto at = all_tested().find(c.op);
  if (at == all_tested().end()) testing::refuse_case(c.at, "no operation is named ", c.op);
  return at->second;
}

std::vector<attr_value> attributes_of(const op_case& c, dtype t) {
  const tested& of = tested_by(c);
  std::vector<attr_value> all = of.proper;
  for (const auto& [name, text] : c.attributes) {
    const auto i = std::find(of.names.begin(), of.names.end(), name) - of.names.begin();
    if (i == std::ssize(of.names)) testing::refuse_case(c.at, c.op, " has no attribute ", name);
    auto& a = all[static_cast<std::size_t>(i)];
    a = testing::attribute_from(a, text, t, c.at);
  }
  return all;
}

std::vector<any_array> arrays_of(const std::vector<testing::written_array>& w, dtype t) {
  std::vector<any_array> all;
  for (const auto& a : w) all.push_back(testing::array_from(a, t));
  return all;
}

/// Whether the shape rule takes the case's inputs where T is `t`.
bool takes(const op_case& c, dtype t) {
  std::vector<tensor_type> in, out;
  for (const auto& a : c.inputs) in.push_back({a.shape, a.type == dtype::none ? t : a.type});
  const op_def* def = tested_by(c).def;
  if (!def) return true;
  const std::vector<attr_value> attributes = attributes_of(c, t);
  return testing::error_of([&] { infer_types(*def, {in, attributes}, out); }).empty();
}

std::vector<dtype> taken_types(const op_case& c) {
  std::vector<dtype> all;
  for (const dtype t : every_plain_dtype)
    if (takes(c, t)) all.push_back(t);
  return all;
}
/// Whether `t` has the values of the inputs; it has its own limits.
bool has_inputs(const op_case& c, dtype t) {
  static const std::set<std::string_view> limits{"max", "lowest", "tiny", "-tiny"};
  return std::ranges::all_of(c.inputs, [t](const testing::written_array& w) {
    if (w.type != dtype::none) return true;
    const any_array exact = testing::array_from(w, dtype::float64),
                    held = testing::array_from(w, t);
    return visit_dtype(t, [&]<class T>() {
      for (std::int64_t i = 0; i < exact.elements(); ++i) {
        const double x = exact.data<double>()[i], y = static_cast<double>(held.data<T>()[i]);
        const auto word = static_cast<std::size_t>(i);
        if (word < w.values.size() && limits.contains(w.values[word])) continue;
        if (!(x == y || (x != x && y != y))) return false;
      }
      return true;
    });
  });
}
std::vector<dtype> types_of(const op_case& c) {
  if (!c.has_t()) return {dtype::float32};
  std::vector<dtype> all = c.types.empty() ? taken_types(c) : c.types;
  if (c.types.empty() || c.any_type)
    std::erase_if(all, [&](dtype t) { return is_half(t) && !has_inputs(c, t); });
  return all;
}

/// The first element of `got` that is not as expected, "" for none. `expected` is what `written`
/// says, perhaps several times, or `each` element of it several times.
std::string unexpected(const any_array& got, const any_array& expected,
                       const testing::written_array& written, const op_case& c,
                       std::int64_t each = 1) {
  std::string other = testing::difference(got, expected, c.ulps, c.least);
  if (!other.empty()) return other;
  const auto number = [&](std::int64_t i) { return i / each % std::ssize(written.values); };
  return visit_dtype(got.type(), [&]<class T>() -> std::string {
    if constexpr (deft::ext::is_floating_type<T>)
      for (std::int64_t i = 0; i < got.elements(); ++i) {
        const T g = got.data<T>()[i];
        if (expected.data<T>()[i] != 0 || g != 0) continue;
        const std::string& w = written.values[static_cast<std::size_t>(number(i))];
        if ((w == "-0" && !std::signbit(g)) || (w == "+0" && std::signbit(g)))
          return str("at ", i, ": ", std::signbit(g) ? "-0" : "+0", " and ", w);
      }
    return {};
  });
}

/// How the operation's inputs come to it, and what becomes of its results. All yield the same.
enum class way {
  fed,
  unknown,  ///< fed, and only a run knows their extents
  constants,
  fused,          ///< elementwise operations before and behind it
  unknown_fused,  ///< both
  transposed,     ///< from transposed arrays
  sliced,         ///< from parts of larger arrays
};
constexpr way all_ways[] = {way::fed,           way::unknown,    way::constants, way::fused,
                            way::unknown_fused, way::transposed, way::sliced};
std::string to_string(way w) {
  static constexpr const char* names[] = {"fed",
                                          "fed, their extents not known",
                                          "constants",
                                          "fused with others",
                                          "fused with others, their extents not known",
                                          "transposed",
                                          "sliced"};
  return names[static_cast<int>(w)];
}
bool has_extents(way w) { return w != way::unknown && w != way::unknown_fused; }
bool is_fused(way w) { return w == way::fused || w == way::unknown_fused; }

/// An elementwise operation that yields x.
any_tensor same_elements(const any_tensor& x) {
  return x.type() == dtype::boolean ? x || x : maximum(x, x);
}
dims reversed(const dims& d) {
  dims r;
  for (int i = d.rank(); i-- > 0;) r.push_back(d[i]);
  return r;
}
/// An array of another shape, whose elements f moves: of the offset into it of each index of `a`.
template <class Offset>
any_array moved(const any_array& a, const dims& shape, Offset offset) {
  any_array b(a.type(), shape);
  const std::size_t size = size_of_dtype(a.type());
  if (b.bytes() != 0) std::memset(b.mutable_raw(), 1, b.bytes());
  dims index = dims::filled(a.shape().rank(), 0);
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    std::memcpy(
        static_cast<char*>(b.mutable_raw()) + static_cast<std::size_t>(offset(index)) * size,
        static_cast<const char*>(a.raw()) + static_cast<std::size_t>(i) * size, size);
    for (int d = a.shape().rank(); d-- > 0;) {
      if (++index[d] < a.shape()[d]) break;
      index[d] = 0;
    }
  }
  return b;
}

struct outcome {
  std::vector<any_array> values;
  std::vector<tensor_type> inferred;
};
outcome run(session& s, const op_case& c, const std::vector<attr_value>& attributes,
            const std::vector<any_array>& in, way w) {
  tensors operands;
  std::vector<feed_value> fed;
  const auto feed = [&](any_array a, const dims& declared) {
    const any_tensor x = testing::any(a.type(), declared);
    fed.push_back(detail::array_feed(x.handle(), std::move(a)));
    return x;
  };
  for (const any_array& a : in) {
    const dims& shape = a.shape();
    const int rank = shape.rank();
    any_tensor x;
    if (w == way::constants) {
      x = detail::add_constant(a, here());
    } else if (!has_extents(w)) {
      x = feed(a, dims::filled(rank, dyn));
    } else if (w == way::transposed) {
      const dims other = reversed(shape);
      const auto offset = [&](const dims& i) {
        std::int64_t at = 0;
        for (int d = rank; d-- > 0;) at = at * shape[d] + i[d];
        return at;
      };
      const any_array from = moved(a, other, offset);
      x = transpose(feed(from, other), axes(op::transpose::reversed(rank)));
    } else if (w == way::sliced) {
      dims larger = shape;
      for (auto& e : larger) e += 3;
      const auto offset = [&](const dims& i) {
        std::int64_t at = 0;
        for (int d = 0; d < rank; ++d) at = at * larger[d] + i[d] + 1;
        return at;
      };
      x = slice(feed(moved(a, larger, offset), larger), dims::filled(rank, 1), shape);
    } else {
      x = feed(a, shape);
    }
    operands.push_back(is_fused(w) ? same_elements(x) : x);
  }
  tensors out = tested_by(c).write(operands, attributes);
  outcome o;
  for (const any_tensor& t : out) o.inferred.push_back(t.handle().type());
  if (is_fused(w))
    for (any_tensor& t : out) t = same_elements(t);
  o.values = fed.empty() ? s.run(out) : s.run(out, fed);
  return o;
}

/// `n` copies of operands of rank `rank` at least, along a new first axis or last one.
any_array copies(const any_array& a, std::int64_t n, int rank, bool first) {
  dims shape;
  if (first) {
    shape.push_back(n);
    for (int i = a.shape().rank(); i < rank; ++i) shape.push_back(1);
  }
  for (auto e : a.shape()) shape.push_back(e);
  if (!first) shape.push_back(n);
  any_array all(a.type(), shape);
  const auto size = size_of_dtype(a.type());
  for (std::int64_t i = 0; i < all.elements(); ++i)
    std::memcpy(static_cast<char*>(all.mutable_raw()) + static_cast<std::size_t>(i) * size,
                static_cast<const char*>(a.raw()) +
                    static_cast<std::size_t>(first ? i % a.elements() : i / n) * size,
                size);
  return all;
}

void check(session& s, const op_case& c, dtype t, way w) {
  const std::string place = to_string(c.at), type(to_string(t));
  INFO(place, ": ", c.op, ", T is ", type, ", ", to_string(w));
  const std::vector<any_array> in = arrays_of(c.inputs, t), expected = arrays_of(c.outputs, t);
  const std::vector<attr_value> attributes = attributes_of(c, t);
  std::optional<outcome> o;
  const std::string error = testing::error_of([&] { o = run(s, c, attributes, in, w); });
  if (!c.error.empty()) {
    INFO("it says: ", error);
    CHECK(error.find(c.error) != error.npos);
    return;
  }
  CHECK(error == "");
  if (!o) return;
  CHECK(o->values.size() == expected.size());
  if (o->values.size() != expected.size()) return;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const any_array& got = o->values[i];
    const tensor_type& inferred = o->inferred[i];
    INFO("output ", i, " is ", to_string(got));
    CHECK(inferred.type == got.type());
    if (!has_extents(w))
      CHECK(may_equal(inferred.shape, got.shape()));
    else
      CHECK(inferred.shape == got.shape());
    CHECK(unexpected(got, expected[i], c.outputs[i], c) == "");
  }
}

/// Enough elements for packs and several threads, with a few left over.
void check_copies(session& s, const op_case& c, dtype t, std::int64_t n, bool first) {
  const std::string place = to_string(c.at), type(to_string(t));
  INFO(place, ": ", c.op, ", T is ", type, ", ", n, std::string(first ? " copies" : " of each"));
  std::vector<any_array> in = arrays_of(c.inputs, t);
  const any_array expected = testing::array_from(c.outputs[0], t);
  int rank = 0;
  for (const auto& a : in) rank = std::max(rank, a.shape().rank());
  for (auto& a : in) a = copies(a, n, rank, first);
  std::optional<outcome> o;
  CHECK(testing::error_of([&] { o = run(s, c, attributes_of(c, t), in, way::fed); }) == "");
  if (!o) return;
  CHECK(unexpected(o->values.at(0), copies(expected, n, rank, first), c.outputs[0], c,
                   first ? 1 : n) == "");
}

std::vector<op_case> all_cases() {
  std::vector<op_case> all;
  for (const auto& table : testing::case_tables)
    for (auto& c : testing::read_cases(table.text, table.file)) all.push_back(std::move(c));
  return all;
}

}  // namespace

TEST_CASE_FIXTURE(testing::own_graph, "operations yield what tests/op/cases/ says") {
  session s;
  int run = 0;
  for (const op_case& c : all_cases()) {
    const bool elementwise =
        tested_by(c).def && tested_by(c).def->is(op_traits::elementwise) && c.error.empty();
    // The number of these functions' results is an extent.
    const bool by_extent = c.op == "split" || c.op == "unstack";
    for (dtype t : types_of(c)) {
      // What is wrong in the table itself.
      const std::string fault = testing::error_of([&] {
        for (way w : all_ways)
          if (has_extents(w) || !by_extent) check(s, c, t, w);
        if (!elementwise) return;
        check_copies(s, c, t, 67, true);
        check_copies(s, c, t, 67, false);
        check_copies(s, c, t, 1501, true);
      });
      CHECK(fault == "");
      ++run;
    }
  }
  CHECK(run > 500);
}

TEST_CASE("tests/op/cases/ has cases of every dtype that the shape rule takes") {
  std::map<std::string, std::set<dtype>> taken, tried;
  for (const op_case& c : all_cases()) {
    const op_def* def = tested_by(c).def;
    if (!c.error.empty() || !def) continue;
    if (c.has_t()) {
      for (dtype t : taken_types(c)) taken[c.op].insert(t);
      for (dtype t : types_of(c)) tried[c.op].insert(t);
    } else if (!c.inputs.empty()) {
      const bool last = def->is(op_traits::elementwise);
      tried[c.op].insert((last ? c.inputs.back() : c.inputs.front()).type);
    }
  }
  CHECK(taken.size() > 50);
  for (const auto& of : taken)
    for (dtype t : of.second) {
      INFO(of.first, " of ", to_string(t));
      CHECK(tried[of.first].contains(t));
    }
}

TEST_CASE("a fault in a table of cases is reported with its file and line") {
  const auto said = [](std::string_view text, dtype t = dtype::int32) {
    return testing::error_of([&] {
      for (const op_case& c : testing::read_cases(text, "a.txt")) {
        attributes_of(c, t);
        arrays_of(c.inputs, t);
      }
    });
  };
  CHECK(said("# fine\nadd\n  in {1}\n  in 2\n  out {3}\n") == "");
  const struct {
    std::string_view text, message;
  } faults[] = {
      {"  in 1\n", "a.txt:1: expected an operation at the start of a line"},
      {"add\n\n  input 1\n", "a.txt:3: expected for, in, out, within or error, and got \"input\""},
      {"add\n  in 1\n", "a.txt:1: expected either outputs or an error"},
      {"add\n  out 1\n  error x\n", "a.txt:1: expected either outputs or an error"},
      {"add\n  in 1\n  error x\n", "a.txt:1: an error of T needs a line with dtypes"},
      {"add\n  for float8\n", "a.txt:2: float8 is not a dtype"},
      {"add\n  for float\n  in bool true\n  out bool true\n",
       "a.txt:1: dtypes for T, which nothing"},
      {"ad\n  in 1\n  out 1\n", "a.txt:1: no operation is named ad"},
      {"sum axes\n  in 1\n  out 1\n", "a.txt:1: expected name=value, and got \"axes\""},
      {"sum axis=(0)\n  in 1\n  out 1\n", "a.txt:1: sum has no attribute axis"},
      {"sum axes=0\n  in 1\n  out 1\n", "a.txt:1: expected a list such as (0,1), and got 0"},
      {"sum\n  in {1, {2}}\n  out 1\n", "a.txt:2: an array's braces are not equally deep"},
      {"sum\n  in {{1}, 2}\n  out 1\n", "a.txt:2: an array's braces are not equally deep"},
      {"sum\n  in {{1, 2}, {3}}\n  out 1\n", "a.txt:2: lists of 2 and of 1 on one level"},
      {"sum\n  in {1,\n  2\n", "a.txt:2: expected a value at \"\""},
      {"sum\n  in {1} 2\n  out 1\n", "a.txt:2: \"2\" stands behind an array"},
      {"sum\n  in (2,2){1, 2}\n  out 1\n", "a.txt:2: 2 values for an array of (2,2)"},
      {"sum\n  in (-1){1}\n  out 1\n", "a.txt:2: \"-1\" is not an extent"},
      {"sum\n  in\n  out 1\n", "a.txt:2: expected an array"},
      {"sum\n  in 1.5\n  out 1\n", "a.txt:2: \"1.5\" is not a int32"},
      {"sum\n  in uint8(3){254, 255, ...}\n  out 1\n", "a.txt:2: 256 is not a uint8"},
      {"sum\n  in bool{1}\n  out 1\n", "a.txt:2: \"1\" is not a bool"},
  };
  for (const auto& f : faults) {
    const std::string e = said(f.text);
    INFO(f.text);
    INFO(e);
    CHECK(e.starts_with("invalid_argument: " + std::string(f.message)));
  }
}
