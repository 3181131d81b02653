// SPDX-License-Identifier: Apache-2.0
// deft/graph/node_text.hpp: what a node computes, as readable text.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <string>

namespace deft::ext {

/// "matmul(x, w1)", "relu(matmul + b1)", "w -= 0.1 * gradient": the operation of node `n` of `g` on
/// the names of its inputs, a program as an expression. What a program uses several times is named
/// first: "t1 = x - mean; square(t1)"; `row_sum` and `column_sum` are folds of a region. Attributes
/// follow by name. Long texts are cut.
std::string expression_text(const graph_def& g, const node_def& n);

/// Bytes of a value; dyn if an extent is, or it is of strings.
std::int64_t bytes_of_value(const tensor_type& t);

}  // namespace deft::ext
