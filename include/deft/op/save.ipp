// SPDX-License-Identifier: Apache-2.0
// deft/op/save.ipp: shape rules of saving and restoring.
#pragma once
#include <deft/op/base/text.hpp>
#include <deft/op/save.hpp>

namespace deft::op {
namespace {

/// The types in an attribute, which are to be `names`.
std::vector<tensor_type> types_of(std::string_view op, const integers& types, std::size_t names) {
  std::vector<tensor_type> all;
  for (std::size_t at = 0; at < types.size();) {
    const auto bad = [&] {
      fail(errc::invalid_argument, "[", op, "] attribute \"types\" is not sound");
    };
    if (types.size() - at < 2) bad();
    const dtype type = dtype_of_number(types[at]);
    const std::int64_t rank = types[at + 1];
    at += 2;
    if (type == dtype::none || rank < 0 || rank > max_rank ||
        types.size() - at < static_cast<std::size_t>(rank))
      bad();
    tensor_type t{dims(std::span(types).subspan(at, static_cast<std::size_t>(rank))), type};
    at += static_cast<std::size_t>(rank);
    expect_extents(op, t.shape, true);
    all.push_back(std::move(t));
  }
  if (all.size() != names)
    fail(errc::invalid_argument, "[", op, "] ", names, " names for ", all.size(), " types");
  return all;
}

}  // namespace

tensor_type save_tensors::infer(std::span<const tensor_type> in) const {
  expect_text(name, in[0]);
  if (names.size() != in.size() - 1)
    fail(errc::invalid_argument, "[save_tensors] ", names.size(), " names for ", in.size() - 1,
         " tensors");
  if (suffix.find('/') != suffix.npos)
    fail(errc::invalid_argument, "[save_tensors] the suffix \"", suffix, "\" contains a slash");
  return {dims{}, dtype::int64};
}

integers as_integers(std::span<const tensor_type> types) {
  integers all;
  for (const auto& t : types) {
    all.push_back(static_cast<std::int64_t>(t.type));
    all.push_back(t.shape.rank());
    all.insert(all.end(), t.shape.begin(), t.shape.end());
  }
  return all;
}

std::vector<tensor_type> snapshot_variables::outputs() const {
  auto all = types_of(name, types, variables.size());
  if (containers.size() != variables.size())
    fail(errc::invalid_argument, "[snapshot_variables] ", containers.size(), " containers for ",
         variables.size(), " variables");
  return all;
}

std::vector<tensor_type> restore_tensors::outputs() const {
  return types_of(name, types, names.size());
}

std::vector<tensor_type> restore_tensors::infer(std::span<const tensor_type> in) const {
  expect_text(name, in[0]);
  return outputs();
}

}  // namespace deft::op
