// SPDX-License-Identifier: Apache-2.0
// 27_language_model/llama.cpp: einsum has a letter for each axis: t and s are tokens, i and o
// features, g groups of heads that share keys and values, h the heads of a group, d the features of
// a head; p are pairs of those, and r the two of a pair, which are turned by angles that grow with
// the position.
#include "llama.hpp"

#include <cmath>

using namespace deft;

llama::llama(std::optional<gguf_file> file, std::int64_t context)
    : file_(std::move(file)),
      context_(context),
      words_(file_ ? file_->entries().at("token_embd.weight").shape[0] : 128),
      width_(setting<std::int64_t>("embedding_length", 16)),
      hidden_(setting<std::int64_t>("feed_forward_length", 32)),
      heads_(setting<std::int64_t>("attention.head_count", 4)),
      groups_(setting<std::int64_t>("attention.head_count_kv", 2)),
      size_(width_ / heads_) {}

any_variable llama::variable(const std::string& name, const dims& shape, const initializer& first) {
  const auto there = current_graph().find_variable(name);
  return there ? any_variable(there) : any_variable(name, shape, first);
}

any_tensor llama::weight(const std::string& name, const dims& shape) const {
  if (file_) return variable(name, shape, initializer(file_->read(name)));
  return variable(name, shape, shape.rank() == 1 ? ones() : random_normal(0, 0.3));
}

any_tensor llama::norm(const any_tensor& x, const std::string& name) const {
  const auto epsilon = setting<float>("attention.layer_norm_rms_epsilon", 1e-5f);
  return x / sqrt(mean(square(x), axis<-1>, keepdims) + epsilon) * weight(name, {width_});
}

any_tensor llama::operator()(const any_tensor& tokens, const any_tensor& position) const {
  const std::int64_t n = groups_, m = heads_ / groups_, pairs = size_ / 2;
  const any_tensor end = position + cast<std::int32_t>(size_of(tokens));
  const any_tensor at = arange(position, end);
  const any_tensor seen = arange(0, end) <= at(all, newaxis);  // (t,s)

  const auto slower =
      -2 * std::log(setting<float>("rope.freq_base", 1e4f)) / static_cast<float>(size_);
  const any_tensor angle = cast<float>(at)(all, newaxis) * exp(arange<float>(pairs) * slower);
  const any_tensor cosine = cos(angle)(ellipsis, newaxis);
  const any_tensor sine = sin(angle)(ellipsis, newaxis) * constant({-1.f, 1.f});
  const auto turned = [&](const any_tensor& x) -> any_tensor {
    return x * cosine + flip(x, axis<-1>) * sine;
  };

  const any_tensor table = weight("token_embd.weight", {words_, width_});
  any_tensor x = gather(table, tokens);
  for (int i = 0; i < setting("block_count", 2); ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    const auto w = [&](const std::string& name, std::int64_t out, std::int64_t in) {
      return weight(layer + name + ".weight", {out, in});
    };
    // All until now, after those of these tokens have been put into the variable.
    const auto kept = [&](const std::string& name, const any_tensor& x, const dims& shape) {
      const any_variable cache = variable(layer + name, shape, zeros());
      return cache(all, range(position, end)).assign(x).value()(all, range(0, end));
    };

    const any_tensor y = norm(x, layer + "attn_norm.weight");
    const any_tensor wq = reshape(w("attn_q", width_, width_), {n, m, pairs, 2, width_});
    const any_tensor wk = reshape(w("attn_k", n * size_, width_), {n, pairs, 2, width_});
    const any_tensor wv = reshape(w("attn_v", n * size_, width_), {n, size_, width_});
    const any_tensor wo = reshape(w("attn_output", width_, width_), {width_, n, m, size_});
    const any_tensor k = turned(einsum("ti,gpri->gtpr"_es, y, wk));
    const any_tensor q = turned(einsum("ti,ghpri->ghtpr"_es, y, wq));
    const any_tensor v = einsum("ti,gdi->gtd"_es, y, wv);
    const any_tensor keys = kept("keys", k, {n, context_, pairs, 2});
    const any_tensor values = kept("values", v, {n, context_, size_});
    const any_tensor scores =
        einsum("ghtpr,gspr->ghts"_es, q, keys) / std::sqrt(static_cast<float>(size_));
    const any_tensor shares = softmax(where(seen, scores, -1e30f));
    x = x + einsum("ghts,gsd,oghd->to"_es, shares, values, wo);

    const any_tensor z = norm(x, layer + "ffn_norm.weight");
    const any_tensor gate = einsum("ti,oi->to"_es, z, w("ffn_gate", hidden_, width_));
    const any_tensor up = einsum("ti,oi->to"_es, z, w("ffn_up", hidden_, width_));
    x = x + einsum("ti,oi->to"_es, silu(gate) * up, w("ffn_down", width_, hidden_));
  }
  return einsum("i,oi->o"_es, norm(x, "output_norm.weight")(-1), table);
}
