// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/fault.ipp: what faults of device code say.
#pragma once
#include <deft/core/text.hpp>
#include <deft/kernels/gpu/fault.hpp>

namespace deft::ext::gpu {

error error_of(const fault_record& r) {
  auto bad_index = [&](std::string_view op) {
    return error(errc::out_of_range,
                 str("[", op, "] the index ", r.value, " is out of range for ", r.limit, " rows"));
  };
  switch (r.kind) {
    case fault_kind::divided:
      return error(errc::invalid_argument, "[div] integer division by zero");
    case fault_kind::remainder:
      return error(errc::invalid_argument, "[mod] integer division by zero");
    case fault_kind::gathered:
      return bad_index("gather");
    case fault_kind::scattered:
      return bad_index("scatter_add");
    case fault_kind::summed:
      return bad_index("sum_rows");
    case fault_kind::subtracted:
      return bad_index("scatter_sub");
    case fault_kind::replaced:
      return bad_index("scatter_update");
    case fault_kind::maximized:
      return bad_index("scatter_max");
    case fault_kind::replaced_of_value:
      return bad_index("scatter");
    case fault_kind::maximized_of_value:
      return bad_index("scatter_maximum");
    case fault_kind::labelled:
      return error(errc::out_of_range,
                   str("[softmax_cross_entropy] the label ", r.value, " of row ", r.row,
                       " is out of range for ", r.limit, " classes"));
    case fault_kind::none:
      break;
  }
  return error(errc::internal, "the device reported an error of unknown kind");
}

}  // namespace deft::ext::gpu
