// SPDX-License-Identifier: Apache-2.0
// deft/op/save.ipp: shape rules of saving and restoring.
#pragma once
#include <deft/op/save.hpp>

namespace deft::op {
namespace {

/// The types in an attribute, which are to be `names`.
std::vector<tensor_type> types_of(std::string_view op, const tensor_types& types,
                                  std::size_t names) {
  for (const tensor_type& t : types) expect_extents(op, t.shape, true);
  if (types.size() != names)
    fail(errc::invalid_argument, "[", op, "] ", names, " names for ", types.size(), " types");
  return types;
}

}  // namespace

tensor_type save_tensors::infer(std::span<const tensor_type> in) const {
  if (in[0] != tensor_type{dims{}, dtype::string})
    fail(errc::invalid_argument, "[save_tensors] expects a path, string(), and got ", in[0]);
  if (names.size() != in.size() - 1)
    fail(errc::invalid_argument, "[save_tensors] ", names.size(), " names for ", in.size() - 1,
         " tensors");
  for (std::size_t i = 0; i < names.size(); ++i)
    if (in[i + 1].type == dtype::string)
      fail(errc::invalid_argument, "[save_tensors] \"", names[i], "\" is ", in[i + 1],
           ": checkpoints, which are safetensors files, have no elements of string");
  if (suffix.find('/') != suffix.npos)
    fail(errc::invalid_argument, "[save_tensors] the suffix \"", suffix, "\" contains a slash");
  return {dims{}, dtype::int64};
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
  const tensor_type each{dims{static_cast<std::int64_t>(names.size())}, dtype::string};
  for (const tensor_type& t : in)
    if (t.type != each.type || !fits(each.shape, t.shape))
      fail(errc::invalid_argument, "[restore_tensors] expects files and names, ", each,
           ", and got ", t);
  return outputs();
}

}  // namespace deft::op
