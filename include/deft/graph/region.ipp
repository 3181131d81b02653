// SPDX-License-Identifier: Apache-2.0
// deft/graph/region.ipp: the written definition of a sound region.
#pragma once
#include <algorithm>
#include <deft/graph/region.hpp>

namespace deft {

dtype region::type_of(std::size_t value) const {
  if (value < inputs.size()) return inputs[value].type;
  value -= inputs.size();
  if (value < immediates.size()) return immediates[value];
  return code[value - immediates.size()].type;
}

namespace {

class region_checker {
 public:
  explicit region_checker(const region& r) : region_(r), last_read_(r.inputs.size()) {}

  region_shape run() {
    if (region_.code.empty()) bad("a region without instructions");
    if (region_.code.size() > max_fused_operations)
      bad("a region of ", region_.code.size(), " operations, more than ", max_fused_operations);
    if (region_.outputs.empty() || region_.outputs.size() > region::most_outputs)
      bad("a region has 1 to ", region::most_outputs, " results, not ", region_.outputs.size());
    for (const auto& i : region_.inputs) add(i.type, i.where, 0);
    for (auto t : region_.immediates) add(t, extent_class::whole, 0);
    for (std::size_t i = 0; i < region_.code.size(); ++i) instruct(i);
    for (const auto& o : region_.outputs) put_out(o);
    return std::move(shape_);
  }

 private:
  template <class... T>
  [[noreturn]] static void bad(const T&... text) {
    fail(errc::invalid_argument, "[region] ", text...);
  }

  void add(dtype t, extent_class where, std::uint8_t phase) {
    if (!is_valid(t)) bad("value ", shape_.where.size(), " has no dtype");
    shape_.where.push_back(where);
    shape_.phase.push_back(phase);
    shape_.phases = std::max<std::uint8_t>(shape_.phases, static_cast<std::uint8_t>(phase + 1));
  }

  void instruct(std::size_t number) {
    const auto& c = region_.code[number];
    const std::size_t known = shape_.where.size();
    std::uint8_t phase = 0;
    if (c.count == 0 || c.count > std::size(c.args))
      bad("instruction ", number, " has ", int{c.count}, " operands");
    for (int a = 0; a < c.count; ++a) {
      if (c.args[a] >= known)
        bad("instruction ", number, " uses value ", c.args[a], " before it is there");
      if (is_result_only(c.args[a]))
        bad("instruction ", number,
            " uses a fold over columns or over all, which is a result only");
      phase = std::max(phase, shape_.phase[c.args[a]]);
    }
    for (int a = 0; a < c.count; ++a)
      if (c.args[a] < last_read_.size())
        last_read_[c.args[a]] = std::max(last_read_[c.args[a]], phase);
    if (c.fold != fold_kind::none) return fold(number, phase);
    map(number, phase);
  }
  bool is_result_only(std::uint16_t value) const {
    const std::size_t first = region_.inputs.size() + region_.immediates.size();
    if (value < first) return false;
    const auto& c = region_.code[value - first];
    return c.fold != fold_kind::none && c.to != extent_class::row;
  }

  void fold(std::size_t number, std::uint8_t phase) {
    const auto& c = region_.code[number];
    if (c.op || c.count != 1 || c.to == extent_class::element)
      bad("fold ", number, " takes one value, and leaves one for a row, a column or all");
    if (shape_.where[c.args[0]] != extent_class::element)
      bad("fold ", number, " is of a value that is the same along what is folded");
    if (c.type != region_.type_of(c.args[0]) || !is_numeric(c.type))
      bad("fold ", number, " gives ", c.type, " of ", region_.type_of(c.args[0]));
    add(c.type, c.to, static_cast<std::uint8_t>(phase + (c.to == extent_class::row)));
  }

  void map(std::size_t number, std::uint8_t phase) {
    const auto& c = region_.code[number];
    if (!c.op || !c.op->is(op_traits::elementwise))
      bad("instruction ", number, " is not elementwise");
    std::vector<tensor_type> in, out;
    extent_class where = extent_class::whole;
    for (int a = 0; a < c.count; ++a) {
      in.push_back({dims{}, region_.type_of(c.args[a])});
      where = join(where, shape_.where[c.args[a]]);
    }
    std::vector<attr_value> attributes;
    if (!c.op->attributes.empty()) attributes.emplace_back(static_cast<std::int64_t>(c.type));
    infer_types(*c.op, {in, attributes}, out);
    if (out.size() != 1 || out[0].type != c.type)
      bad("instruction ", number, " (", c.op->name, ") gives ",
          out.empty() ? dtype::none : out[0].type, ", not ", c.type);
    add(c.type, where, phase);
  }

  void put_out(const region::output& o) {
    const std::size_t first = region_.inputs.size() + region_.immediates.size();
    if (o.value < first || o.value >= shape_.where.size())
      bad("value ", o.value, " is no result of an instruction");
    if (o.into == region::none) return;
    if (o.into >= region_.inputs.size()) bad("there is no input ", o.into, " to be written over");
    const auto& i = region_.inputs[o.into];
    if (i.type != region_.type_of(o.value) || i.where != shape_.where[o.value])
      bad("a result is written over input ", o.into, ", which has another dtype or class");
    for (const auto& other : region_.outputs)
      if (&other != &o && other.into == o.into) bad("two results are written over input ", o.into);
    if (last_read_[o.into] > shape_.phase[o.value])
      bad("input ", o.into, " is read again after it is written over");
  }

  const region& region_;
  region_shape shape_;
  std::vector<std::uint8_t> last_read_;  ///< of each input, the last phase that reads it
};

}  // namespace

region_shape check(const region& r) { return region_checker(r).run(); }

}  // namespace deft
