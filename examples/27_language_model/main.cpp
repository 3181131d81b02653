// SPDX-License-Identifier: Apache-2.0
// 27_language_model/main.cpp: a language model goes on with a text: that of a GGUF file, such as
// SmolLM2-135M, or without `--data FILE` a small one of random numbers. Variables keep the keys and
// values of all tokens that it has read: a step reads the prompt, and then one each new token.
//
//     tokens ── rows of the table ── x ──┬── norm ── queries ── attention ── + ── feed forward ── x
//                                        │      └── keys, values  ▲               (each layer)
//                                        │                ▼       │
//     position ── angles, and where ─────┘            variables ──┘
//
//     x of the last token ── norm ── times the table ── logits ──▶ the next token, drawn here
//
// ctest: --tokens 20
// prints: read at once: logits differ by less than 0.001
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deft/deft.hpp>
#include <filesystem>
#include <numeric>
#include <random>

#include "llama.hpp"

using namespace deft;

/// The largest of the logits, or, with `most` > 1, one of as many, drawn by their probabilities.
std::int32_t choose(const ndarray<float, dyn>& logits, int most, float temperature,
                    std::mt19937& random) {
  std::vector<std::int32_t> best(static_cast<std::size_t>(logits.size()));
  std::iota(best.begin(), best.end(), 0);
  const auto last = best.begin() + std::clamp<std::ptrdiff_t>(most, 1, logits.size());
  std::partial_sort(best.begin(), last, best.end(),
                    [&](auto a, auto b) { return logits(a) > logits(b); });
  std::vector<float> weights;
  std::transform(best.begin(), last, std::back_inserter(weights),
                 [&](auto i) { return std::exp((logits(i) - logits(best[0])) / temperature); });
  std::discrete_distribution<std::size_t> draw(weights.begin(), weights.end());
  return best[draw(random)];
}

/// The file, or the one in the folder.
std::string gguf_in(const std::string& path) {
  if (std::filesystem::is_directory(path))
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.path().extension() == ".gguf") return entry.path();
  return path;
}

int main(int argc, char** argv) {
  const task self(argc, argv,
                  {{"prompt", "what it goes on with"},
                   {"tokens", "how many it adds (40)"},
                   {"top_k", "each is one of the so many best (1)"},
                   {"temperature", "below 1, better ones are drawn more often (0.8)"}});
  const std::string prompt = self.flag("prompt", std::string("The capital of France is"));
  const int count = self.flag("tokens", 40), most = self.flag("top_k", 1);
  const float temperature = self.flag("temperature", 0.8f);

  std::optional<gguf_file> file;
  std::optional<byte_pair_tokenizer> tokenizer;
  if (!self.data_dir().empty()) tokenizer.emplace(file.emplace(gguf_in(self.data_dir())));
  std::vector<std::int32_t> tokens(prompt.begin(), prompt.end());  // letters, without a file
  if (tokenizer) tokens = tokenizer->encode(prompt);
  const auto end_of_text = file ? file->get<std::int32_t>("tokenizer.ggml.eos_token_id") : -1;

  const llama model(file, std::ssize(tokens) + count);
  placeholder<std::int32_t, dyn> text("text");
  placeholder<std::int32_t, 1> token("token");
  placeholder<std::int32_t> position("position");
  session s;
  const tensor<float, dyn> after_text(model(text, position)), after_token(model(token, position));
  auto read_text = s.prepare(after_text, feeds(text, position));
  auto read_token = s.prepare(after_token, feeds(token, position));
  s.run(initialize_all());

  std::mt19937 random(1);
  ndarray<float, dyn> logits = read_text(tokens, 0);
  const auto read = std::ssize(tokens);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    const std::int32_t next = choose(logits, most, temperature, random);
    if (next == end_of_text) break;
    logits = read_token({next}, static_cast<int>(tokens.size()));
    tokens.push_back(next);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;

  for (std::int32_t t : tokens) std::printf("%d ", static_cast<int>(t));
  if (tokenizer) std::printf("\n%s", tokenizer->decode(tokens).c_str());
  std::printf("\n%.1f tokens a second\n",
              static_cast<double>(std::ssize(tokens) - read) / took.count());

  // All at once, they lead to the same logits as one by one.
  const ndarray<float, dyn> again = read_text(tokens, 0);
  float apart = 0;
  for (std::int64_t i = 0; i < again.size(); ++i)
    apart = std::max(apart, std::abs(again(i) - logits(i)));
  std::printf("read at once: logits differ by less than %s\n", apart < 1e-3f ? "0.001" : "much");
  return apart < 1e-3f ? 0 : 1;
}
