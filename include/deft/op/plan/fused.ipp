// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/fused.ipp: shape rule of fused.
#pragma once
#include <deft/op/plan/fused.hpp>

namespace deft {

tensor_type op::fused::infer(std::span<const tensor_type> in) const {
  check(*program);
  const std::size_t inputs = program->inputs.size();
  if (in.size() != inputs && in.size() != inputs + program->immediates.size())
    fail(errc::invalid_argument, "[fused] the program takes ", inputs, " inputs, not ", in.size());
  if (immediates.size() != program->immediates.size())
    fail(errc::invalid_argument, "[fused] the program takes ", program->immediates.size(),
         " immediates, not ", immediates.size());
  dims shape;
  for (std::size_t i = inputs; i < in.size(); ++i)
    if (in[i] != tensor_type{dims{}, program->immediates[i - inputs]})
      fail(errc::invalid_argument, "[fused] literal ", i - inputs, " is ", in[i], ", not a ",
           program->immediates[i - inputs], " of rank 0");
  for (std::size_t i = 0; i < inputs; ++i) {
    if (in[i].type != program->inputs[i])
      fail(errc::invalid_argument, "[fused] input ", i, " is ", in[i].type, ", not ",
           program->inputs[i]);
    dims wider;
    if (!broadcast(shape, in[i].shape, wider))
      fail(errc::invalid_argument, "[", program->code.back().op->name,
           "] the operands' shapes cannot be broadcast together: ",
           join(in.first(inputs), " ", [](const tensor_type& t) { return t.shape; }));
    shape = wider;
  }
  return {shape, program->result()};
}

}  // namespace deft
