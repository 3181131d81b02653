// SPDX-License-Identifier: Apache-2.0
// 26_sentences/bert.cpp: einsum has a letter for each axis: b sentences; l and m tokens of them; h
// heads, d features of a head; i and o features.
#include "bert.hpp"

#include <boost/json.hpp>
#include <cmath>
#include <deft/train/layers.hpp>
#include <fstream>
#include <iterator>

using namespace deft;

bert::bert(const std::string& folder) {
  std::ifstream file(folder + "/config.json");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const boost::json::value config = boost::json::parse(text);
  const auto number = [&](const char* key) { return config.at(key).to_number<std::int64_t>(); };
  words_ = number("vocab_size");
  positions_ = number("max_position_embeddings");
  types_ = number("type_vocab_size");
  layers_ = number("num_hidden_layers");
  width_ = number("hidden_size");
  heads_ = number("num_attention_heads");
  hidden_ = number("intermediate_size");
  epsilon_ = config.at("layer_norm_eps").to_number<double>();
}

namespace {
any_tensor matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
  return any_variable(name + ".weight", {rows, columns}, truncated_normal(0.05));
}
any_tensor bias(const std::string& name, std::int64_t n) {
  return any_variable(name + ".bias", {n}, zeros());
}
}  // namespace

any_tensor bert::norm(const any_tensor& x, const std::string& name) const {
  const any_variable scale(name + ".weight", {width_}, ones());
  return layer_norm(x, scale, bias(name, width_), epsilon_);
}

any_tensor bert::linear(const any_tensor& x, const std::string& name, std::int64_t out,
                        std::int64_t in) const {
  return einsum("bli,oi->blo"_es, x, matrix(name, out, in)) + bias(name, out);
}

any_tensor bert::attention(const any_tensor& x, const any_tensor& there,
                           const std::string& name) const {
  const std::int64_t size = width_ / heads_;
  const auto by_heads = [&](const std::string& part) -> any_tensor {
    const any_tensor w = reshape(matrix(name + part, width_, width_), {heads_, size, width_});
    return einsum("bli,hdi->bhld"_es, x, w) + reshape(bias(name + part, width_), {heads_, 1, size});
  };
  const any_tensor q = by_heads(".self.query"), k = by_heads(".self.key");
  const any_tensor scores =
      einsum("bhld,bhmd->bhlm"_es, q, k) / std::sqrt(static_cast<float>(size));
  const any_tensor shares = softmax(where(there(all, newaxis, newaxis, all), scores, -1e30f));
  const std::string out = name + ".output.dense";
  const any_tensor w = reshape(matrix(out, width_, width_), {width_, heads_, size});
  return einsum("bhlm,bhmd,ohd->blo"_es, shares, by_heads(".self.value"), w) + bias(out, width_);
}

any_tensor bert::operator()(const any_tensor& tokens, const any_tensor& lengths) const {
  const any_tensor position = arange<std::int32_t>(size_of(tokens, axis<1>));
  const any_tensor there = position < lengths(all, newaxis);  // (b,l)
  const std::string in = "embeddings.";
  any_tensor x = norm(gather(matrix(in + "word_embeddings", words_, width_), tokens) +
                          gather(matrix(in + "position_embeddings", positions_, width_), position) +
                          matrix(in + "token_type_embeddings", types_, width_)(0),
                      in + "LayerNorm");
  for (std::int64_t i = 0; i < layers_; ++i) {
    const std::string layer = "encoder.layer." + std::to_string(i);
    x = norm(x + attention(x, there, layer + ".attention"), layer + ".attention.output.LayerNorm");
    const any_tensor wide = gelu(linear(x, layer + ".intermediate.dense", hidden_, width_));
    x = norm(x + linear(wide, layer + ".output.dense", width_, hidden_),
             layer + ".output.LayerNorm");
  }
  const any_tensor total = sum(where(there(all, all, newaxis), x, 0), axis<1>);
  return total / sqrt(sum(square(total), axis<1>, keepdims));  // as of the mean
}
