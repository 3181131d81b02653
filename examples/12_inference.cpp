// SPDX-License-Identifier: Apache-2.0
// 12_inference.cpp: an inference server: weights are read from a file, and several threads get
// their answers through one prepared step.
//
//     weights.idx ── assign ──▶ w ──┐
//                                   ├── matmul ── argmax ──▶ the thread that has asked
//     points of thread 0 … 3 ── x ──┘
//
// prints: 4 threads, 1200 requests, 2400 answers, 0 wrong
#include <atomic>
#include <cstdio>
#include <deft/deft.hpp>
#include <thread>
#include <vector>

using namespace deft;

/// What a training program would have saved: a column for each quadrant of the plane.
void save(const char* file) {
  ndarray<float, 2, 4> weights{1, -1, -1, 1, 1, 1, -1, -1};
  write_idx(file, weights);
}

/// The right answer.
std::int64_t quadrant_of(float x, float y) { return y > 0 ? (x > 0 ? 0 : 1) : (x > 0 ? 3 : 2); }

int main() {
  save("weights.idx");
  placeholder<float, dyn, 2> x("x");
  variable<float, 2, 4> w("w", zeros());
  auto classes = argmax(matmul(x, w), axis<1>);

  session s;
  s.run(w.assign(read_idx("weights.idx")));
  auto answer = s.prepare(classes, feeds(x));

  constexpr int threads = 4, requests = 300;
  std::atomic<int> answers = 0, wrong = 0;
  std::vector<std::jthread> clients;
  for (int t = 0; t < threads; ++t)
    clients.emplace_back([&, t] {
      for (int i = 0; i < requests; ++i) {
        ndarray<float, dyn, 2> points(1 + i % 3);  // requests differ in size
        for (std::int64_t k = 0; k < points.extent(0); ++k) {
          points(k, 0) = static_cast<float>((i + k + t) % 7) - 3.5f;
          points(k, 1) = static_cast<float>((i + k) % 5) - 2.5f;
        }
        ndarray<std::int64_t, dyn> said = answer(points);
        for (std::int64_t k = 0; k < said.size(); ++k)
          wrong += said(k) != quadrant_of(points(k, 0), points(k, 1));
        answers += static_cast<int>(said.size());
      }
    });
  clients.clear();  // waits for them
  std::printf("%d threads, %d requests, %d answers, %d wrong\n", threads, threads * requests,
              answers.load(), wrong.load());
  return wrong == 0 && answers > 0 ? 0 : 1;
}
