// SPDX-License-Identifier: Apache-2.0
// deft/op/all_reduce.ipp: shape rule of all_reduce, and its nodes.
#pragma once
#include <deft/op/all_reduce.hpp>

namespace deft {

ext::tensor_type op::all_reduce::infer(std::span<const ext::tensor_type> in) const {
  ext::tensor_type all = in[0];
  for (const auto& t : in.subspan(1))
    if (t.type != all.type || !unify(all.shape, t.shape, all.shape))
      ext::fail(
          errc::invalid_argument, "[all_reduce] expects tensors of one dtype and shape, and got ",
          ext::join(in.subspan(1), " ", [](const ext::tensor_type& i) { return to_string(i); }));
  if (mean ? !ext::is_floating(all.type) : !ext::is_numeric(all.type))
    ext::fail(errc::invalid_argument, "[all_reduce] expects ",
              mean ? "a floating dtype" : "numbers", ", and got ", all.type);
  return all;
}

std::vector<any_tensor> detail::add_all_reduce(bool mean, std::span<const any_tensor> parts,
                                               ext::source_location w) {
  if (parts.empty())
    throw error(errc::invalid_argument, "[all_reduce] expects one tensor at least, and got none",
                {}, w);
  // It is where its first input is, whatever the scopes say.
  const ext::scope anywhere(device(nullptr));
  std::vector<ext::output> in(1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].valid()) refuse_empty_operand("all_reduce", i + 1, w);
    in.push_back(parts[i].handle());
  }
  std::vector<any_tensor> all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    in[0] = in[i + 1];
    const any_tensor reduced = apply_any(op::all_reduce{mean}, in, w);
    all.push_back(parts.size() == 1 ? parts[0] : reduced);
  }
  return all;
}

}  // namespace deft
