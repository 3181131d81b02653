// SPDX-License-Identifier: Apache-2.0
// benchmarks/by_hand.hpp: what hand-written Eigen computes with: arrays as Eigen's maps, and a
// second thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <deft/deft.hpp>
#include <functional>
#include <thread>

#include <Eigen/Dense>  // after deft, which keeps g++ from warning of its own intrinsics

namespace bench {

template <class T>
using vector_of = deft::ndarray<T, deft::dyn>;
template <class T>
using matrix_of = deft::ndarray<T, deft::dyn, deft::dyn>;
using vector = vector_of<float>;
using matrix = matrix_of<float>;

/// Deterministic values of about unit size, of both signs.
template <class Array>
Array filled(Array a) {
  using value = typename Array::value_type;
  std::uint32_t state = 1;
  for (auto& v : a) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<value>(static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-30f);
  }
  return a;
}

/// Eigen's view of an array, of constant elements for a constant one.
template <class T>
auto eigen(vector_of<T>& v) {
  return Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>(v.data(), v.size());
}
template <class T>
auto eigen(const vector_of<T>& v) {
  return Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(v.data(), v.size());
}
template <class T>
using dense = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
auto eigen(matrix_of<T>& m) {
  return Eigen::Map<dense<T>>(m.data(), m.extents().e[0], m.extents().e[1]);
}
template <class T>
auto eigen(const matrix_of<T>& m) {
  return Eigen::Map<const dense<T>>(m.data(), m.extents().e[0], m.extents().e[1]);
}

/// The two threads of a hand-written step: this one, and one that spins for the next step for a
/// while, and then sleeps, so that others have its processor.
class two_threads {
 public:
  /// Runs `half(0)` and `half(1)` in parallel.
  explicit two_threads(std::function<void(int)> half)
      : half_(std::move(half)), other_([this] {
          for (unsigned seen = 0;;) {
            for (int i = 0; i < spins && asked_ == seen; ++i) pause();
            asked_.wait(seen);
            seen = asked_;
            if (ends_) return;
            half_(1);
            done_ = seen;
          }
        }) {}
  ~two_threads() {
    ends_ = true;
    ++asked_, asked_.notify_one();
  }
  two_threads(const two_threads&) = delete;

  void operator()() {
    const unsigned step = ++asked_;
    asked_.notify_one();
    half_(0);
    while (done_ != step) pause();
  }

 private:
  static constexpr int spins = 20'000;  // about a millisecond
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  std::function<void(int)> half_;
  std::atomic<unsigned> asked_ = 0, done_ = 0;
  std::atomic<bool> ends_ = false;
  std::jthread other_;
};

}  // namespace bench
