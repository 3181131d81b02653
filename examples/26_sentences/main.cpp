// SPDX-License-Identifier: Apache-2.0
// 26_sentences/main.cpp: BERT makes vectors of sentences, close to each other where these say
// similar things; then it is tuned to tell good news from bad news. It is that of a folder as
// Hugging Face has it, such as all-MiniLM-L6-v2, or without `--data DIR` a small random one.
//
//     tokens ── rows of tables ── norm ─┬── attention ── + ── norm ─┬── dense ── + ── norm ── x
//     lengths ── which tokens are there ┼───────┘        │          └────────────┘
//                                       └────────────────┘                     each layer
//     x ── mean ── vector, of length 1 ── dense ── loss ◀── label
//
// ctest: --steps 60
// prints: step 60: loss 0\.[0-4]
// same losses: 0.02
#include <algorithm>
#include <cstdio>
#include <deft/deft.hpp>
#include <fstream>
#include <numeric>

#include "bert.hpp"

using namespace deft;

const std::vector<std::string> things{"server", "worker", "model", "graph", "session"},
    good{"fast", "ready", "right", "better"}, bad{"slow", "lost", "wrong", "worse"};

/// A small model's settings, and a vocabulary of letters and of the words above.
void write_settings() {
  std::ofstream("config.json")
      << R"({"vocab_size": 96, "max_position_embeddings": 80, "type_vocab_size": 2,
             "num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4,
             "intermediate_size": 64, "layer_norm_eps": 1e-12})";
  std::ofstream out("vocab.txt");
  out << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n.\nthe\nis\nnow\n";
  for (const auto& words : {things, good, bad})
    for (const std::string& word : words) out << word << '\n';
  for (char c = 'a'; c <= 'z'; ++c) out << c << "\n##" << c << '\n';
}

struct batch {
  ndarray<std::int32_t, dyn, dyn> tokens;
  ndarray<std::int32_t, dyn> lengths;
};
/// One row of tokens for each text, as long as the longest.
batch batch_of(const std::vector<std::string>& texts, const tokenizer& t) {
  std::vector<std::vector<std::int32_t>> rows;
  std::vector<std::int32_t> lengths;
  for (const std::string& text : texts)
    lengths.push_back(static_cast<std::int32_t>(rows.emplace_back(t.encode(text)).size()));
  ndarray<std::int32_t, dyn, dyn> tokens(rows.size(), std::ranges::max(lengths));
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::ranges::copy(rows[i], &tokens(static_cast<std::int64_t>(i), 0));
  return {std::move(tokens), ndarray<std::int32_t, dyn>(lengths)};
}

int main(int argc, char** argv) {
  const task self(argc, argv, {{"steps", "how many steps tune it (20)"}});
  const std::size_t steps = self.flag("steps", std::size_t{20});
  const std::string data = self.data_dir(), folder = data.empty() ? "." : data;
  if (data.empty()) write_settings();
  set_seed(1);

  const word_piece_tokenizer tokenizer(folder + "/vocab.txt");
  placeholder<std::int32_t, dyn, dyn> tokens("tokens");
  placeholder<std::int32_t, dyn> lengths("lengths"), label("label");
  const tensor<float, dyn, dyn> vectors(bert(folder)(tokens, lengths));
  saver weights({.variables = trainable_variables()});  // those until here
  const any_tensor logits = dense(vectors, 2, "classifier", {.initializer = zeros()});
  const tensor<float> loss(mean(softmax_cross_entropy(logits, label)));
  const auto train = adam(data.empty() ? 0.003 : 3e-4).minimize(loss);
  session s;
  s.run(initialize_all());
  if (!data.empty()) weights.restore(s, folder);

  const std::vector<std::string> sentences{"A parameter server keeps the variables of a model.",
                                           "Gradients travel to the task that owns the variable.",
                                           "Großmutter backt am Sonntag Apfelkuchen."};
  const batch three = batch_of(sentences, tokenizer);
  const ndarray<float, dyn, dyn> v = s.run(vectors, tokens = three.tokens, lengths = three.lengths);
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 6; ++k) std::printf("%9.6f ", static_cast<double>(v(i, k)));
    std::printf("...  %s\n", sentences[static_cast<std::size_t>(i)].c_str());
  }
  const auto cosine = [&](int i, int j) {
    return std::inner_product(&v(i, 0), &v(i, 0) + v.extent(1), &v(j, 0), 0.);
  };
  std::printf("cosines: %.5f %.5f %.5f\n", cosine(0, 1), cosine(0, 2), cosine(1, 2));

  auto step = s.prepare(loss, train, feeds(tokens, lengths, label));
  for (std::size_t i = 0; i < steps; ++i) {
    std::vector<std::string> texts;
    ndarray<std::int32_t, dyn> labels(16);
    for (std::size_t k = 0; k < 16; ++k) {
      const std::size_t n = i * 16 + k;
      const auto& words = n % 2 ? good : bad;
      texts.push_back("The " + things[n % things.size()] + " is " + words[n / 2 % words.size()] +
                      (n % 3 ? "." : " now."));
      labels(static_cast<std::int64_t>(k)) = n % 2;
    }
    const batch b = batch_of(texts, tokenizer);
    const float l = step(b.tokens, b.lengths, labels);
    if (i % 5 == 0 || i + 1 == steps)
      std::printf("step %zu: loss %.4f\n", i + 1, static_cast<double>(l));
  }
}
