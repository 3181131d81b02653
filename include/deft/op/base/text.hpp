// SPDX-License-Identifier: Apache-2.0
// deft/op/base/text.hpp: texts as operands: bytes, in tensors of uint8.
#pragma once
#include <deft/graph/op_def.hpp>
#include <string_view>

namespace deft::op {

/// Throws invalid_argument unless `t`, an operand of operation `op`, is the type of a text.
inline void expect_text(std::string_view op, const tensor_type& t) {
  if (t.type != dtype::uint8 || t.shape.rank() != 1)
    fail(errc::invalid_argument, "[", op, "] expects a text, uint8(dyn), and got ", t);
}

/// The text in `a`, as long as that has its elements.
inline std::string_view text_of(const any_array& a) {
  const auto bytes = a.span<std::uint8_t>();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace deft::op
