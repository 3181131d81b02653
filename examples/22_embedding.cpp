// SPDX-License-Identifier: Apache-2.0
// 22_embedding.cpp: words become vectors. Each word of a made-up language belongs to one of four
// topics, and sentences stay with their topic; a word's vector learns to predict its neighbours. A
// step touches only the rows of the table whose words occur in it.
//
//     table (20,000 x 16) ──┬── gather: words ───────────────┬── dot ── sigmoid ── loss
//        ▲                  └── gather: neighbours, noise ───┘                      │
//        └────────── adagrad, on the rows of these words ◀── gradients ◀────────────┘
//
// prints: loss 0\.69, then 0\.[0-5]
// same losses: 0.011
// prints: nearest to word 42 \(topic 2\): topics 2 2 2 2 2
// prints: training changed 400 of 20000 rows
#include <algorithm>
#include <cstdio>
#include <deft/deft.hpp>
#include <numeric>
#include <random>

using namespace deft;

int main() {
  set_seed(1);
  constexpr std::int64_t words = 20'000, width = 16, batch = 512, topics = 4;
  constexpr std::int64_t frequent = 400;  // words that occur at all
  placeholder<std::int32_t, batch> word("word"), other("other");
  placeholder<float, batch> together("together");  // 1: neighbours; 0: drawn at random
  variable<float, words, width> table("table", random_uniform(-0.1, 0.1));
  auto score = sum(gather(table, word) * gather(table, other), axis<1>);
  auto p = sigmoid(score);
  auto total = -sum(together * log(p + 1e-6f) + (1.f - together) * log(1.f - p + 1e-6f));
  auto loss = total / static_cast<float>(batch);
  auto train = adagrad(0.3).minimize(total);
  session s;
  s.run(initialize_all());
  auto step = s.prepare(loss, train, feeds(word, other, together));

  std::mt19937 random(1);
  const auto draw = [&] { return static_cast<std::int32_t>(random() % frequent); };
  ndarray<std::int32_t, batch> a, b;
  ndarray<float, batch> t;
  float first = 0, last = 0;
  const ndarray<float, words, width> before = s.run(table);
  for (int n = 0; n < 600; ++n) {
    for (int i = 0; i < batch; ++i) {
      a(i) = draw();
      const std::int32_t same = draw() / topics * topics + a(i) % topics;  // of the word's topic
      t(i) = i % 2 ? 1.f : 0.f;
      b(i) = i % 2 ? same : draw();
    }
    last = step(a, b, t);
    if (n == 0) first = last;
  }
  std::printf("loss %.2f, then %.2f\n", static_cast<double>(first), static_cast<double>(last));

  const ndarray<float, words, width> v = s.run(table);
  std::vector<std::int32_t> order(frequent);
  std::iota(order.begin(), order.end(), 0);
  const auto likeness = [&](std::int32_t i, std::int32_t j) {
    float sum = 0;
    for (std::int64_t k = 0; k < width; ++k) sum += v(i, k) * v(j, k);
    return sum;
  };
  constexpr std::int32_t of = 42;
  std::ranges::sort(order, std::greater<>(), [&](std::int32_t i) { return likeness(of, i); });
  std::printf("nearest to word %d (topic %d): topics", of, static_cast<int>(of % topics));
  bool right = true;
  for (int i = 0; i < 5; ++i) {
    const auto topic = order[static_cast<std::size_t>(i)] % topics;
    std::printf(" %d", static_cast<int>(topic));
    right = right && topic == of % topics;
  }
  std::int64_t changed = 0;
  for (std::int64_t i = 0; i < words; ++i) changed += v(i, 0) != before(i, 0);
  std::printf("\ntraining changed %lld of %lld rows\n", static_cast<long long>(changed),
              static_cast<long long>(words));
  return right && changed == frequent ? 0 : 1;
}
