// SPDX-License-Identifier: Apache-2.0
// deft/train/layers_embedding.hpp: vectors for numbers of words, users or things.
#pragma once
#include <deft/op/gather.hpp>
#include <deft/train/layers_common.hpp>

namespace deft {

/// Options of an embedding.
struct embedding_options {
  std::optional<deft::initializer> initializer = {};  ///< random_uniform(-0.05, 0.05)
  dtype type = dtype::float32;  ///< of the table; embedding<rows, width> takes no other
  bool shared = false;          ///< as in dense_options
};

/// The rows of a variable NAME/table of (rows, width) at `ids`, int32 or int64 of any shape, whose
/// result has one axis more. Where the graph has the variable already, it is used again. The
/// gradient consists of the rows that were gathered (see optimizer). Throws invalid_argument if the
/// variable of this name has another shape, and what gather throws.
any_tensor embedding(const any_tensor& ids, std::int64_t rows, std::int64_t width,
                     std::string_view name, const embedding_options& options = {},
                     ext::source_location w = ext::here());

namespace op {
struct embedding;  ///< a gather; only messages use this name
}

namespace detail {
template <class Shape, std::int64_t Last>
struct with_one_more {
  static constexpr dims value = [] {
    dims d = Shape::value;
    if (d.n < max_rank) d.push_back(Last);
    return d;
  }();
};
}  // namespace detail

/// The same, known at compile time: for ids of (?,20), `embedding<10'000, 64>(ids, "words")` is
/// float(?,20,64).
template <std::int64_t Rows, std::int64_t Width, ext::typed_expression X,
          class K = ext::kernels_for<X>>
auto embedding(const X& ids, std::string_view name, embedding_options options = {},
               ext::source_location w = ext::here()) {
  if constexpr (!std::is_same_v<ext::value_type_of<X>, std::int32_t> &&
                !std::is_same_v<ext::value_type_of<X>, std::int64_t>)
    static_assert(detail::takes<op::embedding, detail::got<X>>,
                  "[embedding] expects ids of int32 or int64, and got another dtype: use "
                  "cast<std::int32_t>(x)");
  static_assert(Rows > 0 && Width > 0,
                "[embedding] expects a table of at least one row and one column, as in "
                "embedding<10'000, 64>(ids, \"words\")");
  if (options.type != dtype::float32)
    throw error(errc::invalid_argument,
                ext::str("[embedding] embedding<rows, width> is of float, not of ", options.type,
                         ": use embedding(any_tensor(ids), rows, width, name, options)"),
                std::string(name), w);
  return ext::tensor_of<float, detail::with_one_more<ext::shape_type_of<X>, Width>>(
      embedding(any_tensor(detail::any_lower<K>(ids, w)), Rows, Width, name, options, w).handle());
}
/// @cond refused
template <std::int64_t... N, ext::expression X, class... Given>
requires(sizeof...(Given) < (sizeof...(N) == 2 ? 1 : 3)) detail::refused
    embedding(const X&, const Given&...) {
  static_assert(detail::takes<op::embedding, detail::got<X>, detail::got<Given>...>,
                "[embedding] expects ids, the rows and columns of its table, and a name: "
                "embedding<10'000, 64>(ids, \"words\"), embedding(ids, n, 64, \"words\"); "
                "gather(table, ids) takes the rows of a tensor");
  return {};
}
/// @endcond

}  // namespace deft
