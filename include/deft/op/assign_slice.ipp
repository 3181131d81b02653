// SPDX-License-Identifier: Apache-2.0
// deft/op/assign_slice.ipp: shape rule of updates of a part of a variable.
#pragma once
#include <deft/op/assign_slice.hpp>

namespace deft {

ext::tensor_type op::slice_update::checked_part(std::string_view op,
                                                std::span<const ext::tensor_type> in,
                                                bool arithmetic) const {
  const ext::tensor_type v = checked(op);
  if (arithmetic ? !ext::is_numeric(type) : !ext::plain_dtypes.has(type))
    ext::fail(errc::invalid_argument, "[", op, "] is not defined for ", type);
  const slice o = part();
  const dims of_variable = o.stepped(o.place_in(shape, in.subspan(1), op).size);
  const dims& value = in[0].shape;
  bool fits = in[0].type == type && value.rank() == of_variable.rank();
  for (int i = 0; fits && i < value.rank(); ++i)
    fits = value[i] == 1 || value[i] == dyn || of_variable[i] == dyn || value[i] == of_variable[i];
  if (!fits)
    ext::fail(errc::invalid_argument, "[", op, "] ", in[0], " cannot be broadcast to the part ",
              of_variable, " of variable \"", variable_name, "\", which is ", v);
  return v;
}

}  // namespace deft
