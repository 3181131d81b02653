// SPDX-License-Identifier: Apache-2.0
// deft/op/dataflow.ipp: shape rules of what lowering and plans make.
#pragma once
#include <deft/op/dataflow.hpp>

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

void op::send::infer(std::span<const tensor_type>) const {
  if (key.empty()) fail(errc::invalid_argument, "[send] there is no key");
  (void)parse_device(peer);
}
tensor_type op::recv::infer(std::span<const tensor_type>) const {
  if (key.empty()) fail(errc::invalid_argument, "[recv] there is no key");
  (void)parse_device(peer);
  expect_extents(name, shape, true);
  return {shape, type};
}
tensor_type op::copy::infer(std::span<const tensor_type> in) const {
  (void)parse_device(device);
  return in[0];
}

}  // namespace deft
