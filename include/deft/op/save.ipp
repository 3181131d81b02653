// SPDX-License-Identifier: Apache-2.0
// deft/op/save.ipp: shape rules of saving and restoring.
#pragma once
#include <deft/op/save.hpp>

namespace deft::op {
namespace {

void expect_text(std::string_view op, const tensor_type& t) {
  if (t.type != dtype::uint8 || t.shape.n != 1)
    fail(errc::invalid_argument, "[", op, "] expects a text, uint8(dyn), and got ", t);
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

std::vector<tensor_type> restore_tensors::outputs() const {
  std::vector<tensor_type> all;
  for (std::size_t at = 0; at < types.size();) {
    const auto bad = [] {
      fail(errc::invalid_argument, "[restore_tensors] attribute \"types\" is not sound");
    };
    if (types.size() - at < 2) bad();
    const std::int64_t type = types[at], rank = types[at + 1];
    at += 2;
    if (type <= 0 || type >= dtype_count || rank < 0 || rank > max_rank ||
        types.size() - at < static_cast<std::size_t>(rank))
      bad();
    tensor_type t{dims(std::span(types).subspan(at, static_cast<std::size_t>(rank))),
                  static_cast<dtype>(type)};
    at += static_cast<std::size_t>(rank);
    expect_extents(name, t.shape, true);
    all.push_back(std::move(t));
  }
  if (all.size() != names.size())
    fail(errc::invalid_argument, "[restore_tensors] ", names.size(), " names for ", all.size(),
         " types");
  return all;
}

std::vector<tensor_type> restore_tensors::infer(std::span<const tensor_type> in) const {
  expect_text(name, in[0]);
  return outputs();
}

}  // namespace deft::op
