// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/fused.ipp: shape rule of fused.
#pragma once
#include <deft/op/plan/fused.hpp>

namespace deft {
namespace {

/// The part of a region's extents in which a result differs; the others are 1, or gone.
dims shape_of_output(const ext::program_output& o, int row_axes, const dims& extents) {
  dims shape;
  for (int d = 0; d < extents.rank(); ++d) {
    const bool along_row = d >= extents.rank() - row_axes;
    if (o.where == ext::extent_class::element ||
        (o.where != ext::extent_class::whole &&
         along_row == (o.where == ext::extent_class::column)))
      shape.push_back(extents[d]);
    else if (o.keepdims)
      shape.push_back(1);
  }
  return shape;
}

}  // namespace

std::vector<dims> detail::shapes_of(const ext::program& p, std::span<const ext::tensor_type> in) {
  std::vector<dims> shapes;
  for (const auto& t : in) shapes.push_back(t.shape);
  shapes.resize(p.inputs.size() + p.immediates.size());  // literals have rank 0
  for (const ext::instruction& i : p.code) {
    dims shape;
    for (std::size_t a = 0; a < i.count; ++a) {
      dims wider;
      if (!ext::broadcast(shape, shapes[i.args[a]], wider))
        ext::fail(errc::invalid_argument, "[", i.op->name,
                  "] the operands' shapes cannot be broadcast together: ",
                  ext::join(std::span(i.args, i.count), " ", [&](auto v) { return shapes[v]; }));
      shape = wider;
    }
    shapes.push_back(i.is_fold() ? dims() : shape);  // a fold fits whatever its row fits
  }
  return shapes;
}

std::vector<ext::tensor_type> op::fused::infer(std::span<const ext::tensor_type> in) const {
  ext::validate(*program);
  const std::size_t inputs = program->inputs.size();
  const bool late = !program->is_region() && in.size() == inputs + program->immediates.size();
  if (in.size() != inputs && !late)
    ext::fail(errc::invalid_argument, "[fused] the program takes ", inputs, " inputs, not ",
              in.size());
  if (immediates.size() != program->immediates.size())
    ext::fail(errc::invalid_argument, "[fused] the program takes ", program->immediates.size(),
              " immediates, not ", immediates.size());
  dims shape;
  for (std::size_t i = inputs; i < in.size(); ++i)
    if (in[i] != ext::tensor_type{dims{}, program->immediates[i - inputs]})
      ext::fail(errc::invalid_argument, "[fused] literal ", i - inputs, " is ", in[i], ", not a ",
                program->immediates[i - inputs], " of rank 0");
  for (std::size_t i = 0; i < inputs; ++i) {
    if (in[i].type != program->inputs[i])
      ext::fail(errc::invalid_argument, "[fused] input ", i, " is ", in[i].type, ", not ",
                program->inputs[i]);
    dims wider;
    if (!ext::broadcast(shape, in[i].shape, wider)) {
      detail::shapes_of(*program, in.first(inputs));  // names the operation
      ext::fail(errc::invalid_argument, "[", program->code.back().op->name,
                "] the operands' shapes cannot be broadcast together: ",
                ext::join(in, " ", [](const ext::tensor_type& t) { return t.shape; }));
    }
    shape = wider;
  }
  if (!program->is_region()) return {{shape, program->result()}};
  if (shape.rank() < program->row_axes)
    ext::fail(errc::invalid_argument, "[fused] rows of ", int{program->row_axes},
              " axes in a region of ", shape);
  std::vector<ext::tensor_type> out;
  for (const auto& o : program->outputs)
    out.push_back({shape_of_output(o, program->row_axes, shape), program->type_of(o.value)});
  return out;
}

}  // namespace deft
