// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/simulated/stream.hpp: what kernels queue their work on, on simulated GPUs.
#pragma once
#include <deft/core/dtype.hpp>
#include <deft/kernels/gpu/fault.hpp>
#include <deft/kernels/gpu/row_fold.hpp>
#include <deft/kernels/gpu/simulated/memory.hpp>
#include <functional>
#include <memory>

namespace deft::ext {
struct image_convolution;
struct matrix_product;
}  // namespace deft::ext
namespace deft::ext::gpu::simulated {

/// Work over a part of some numbers.
using range_work = std::function<void(std::int64_t begin, std::int64_t end)>;

/// Work that was captured, in order.
struct captured_call {
  std::function<void()> run;
  bool update;
};

/// What streams know of a run.
struct run_record {
  fault_record faults{};
  std::atomic<bool> stopped{false};
  std::atomic<bool> updated{false};  ///< a variable
};

/// See gpu/stream.hpp.
class stream {
 public:
  /// `update`: what is queued is left out once the run has failed.
  /// `captured`: what is queued comes there instead, if not null.
  stream(queue& q, const tagged_memory& space, std::shared_ptr<run_record> record,
         std::uint32_t item, bool update, std::vector<captured_call>* captured = nullptr)
      : queue_(q),
        space_(space),
        record_(std::move(record)),
        item_(item),
        update_(update),
        captured_(captured) {}

  template <class T>
  const T* in(const void* p) const {
    return static_cast<const T*>(space_.real(p));
  }
  template <class T>
  T* out(void* p) const {
    return static_cast<T*>(space_.real(p));
  }
  fault_report faults() const { return {&record_->faults, item_}; }

  template <class F>
  void launch(std::int64_t n, const F& f) {
    add(n, 4096, [f](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) f(i);
    });
  }

  template <row_fold F>
  void over_rows(const F& f, std::int64_t rows, std::int64_t n, void* room) {
    if (fold_parts(rows, n) > 1) return over_parts(*this, f, rows, n, room);
    fold_rows(f, rows, n);
  }
  /// Without parts.
  template <row_fold F>
  void fold_rows(const F& f, std::int64_t rows, std::int64_t n) {
    add(rows, std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, n)),
        [f, n](std::int64_t begin, std::int64_t end) {
          for (std::int64_t r = begin; r < end; ++r) fold_row(f, r, n);
        });
  }

  /// What a radix sort might take for its counts: sort_by_key writes it full.
  static std::size_t sort_room(std::int64_t n) { return 1024 + static_cast<std::size_t>(n) / 8; }
  void sort_by_key(const std::uint32_t* keys, std::uint32_t* sorted_keys,
                   const std::uint32_t* values, std::uint32_t* sorted_values, std::int64_t n,
                   int bits, void* room);

  /// It has no library.
  static bool multiply(dtype, const matrix_product&, const void*, const void*, void*) {
    return false;
  }
  static bool convolve(dtype, const image_convolution&, const void*, const void*, void*) {
    return false;
  }

  /// Queues f(): for algorithms that are not launches.
  void call(std::function<void()> f);

 private:
  template <class F>
  static void fold_row(const F& f, std::int64_t r, std::int64_t n) {
    constexpr int together = columns_together<F>;
    const int lanes = fold_lanes(n, together);
    typename F::state s[256];
    for (int l = 0; l < lanes; ++l) s[l] = f.start();
    for (std::int64_t c = 0; c < n; c += lanes * together) {
      const auto some = static_cast<int>(std::min<std::int64_t>(lanes * together, n - c));
      for (int i = 0; i < some; ++i) s[i / together] = f.add(s[i / together], r, c + i);
    }
    for (int d = lanes / 2; d > 0; d /= 2)
      for (int l = 0; l < d; ++l) s[l] = f.join(s[l], s[l + d]);
    f.end(r, s[0]);
    if constexpr (row_fold_and_pass<F>)
      for (std::int64_t c = 0; c < n; ++c) f.each(r, c, s[0]);
  }
  /// Queues work over [0, n), some numbers at a time.
  void add(std::int64_t n, std::int64_t some, range_work work);

  queue& queue_;
  const tagged_memory& space_;
  std::shared_ptr<run_record> record_;
  std::uint32_t item_;
  bool update_;
  std::vector<captured_call>* captured_;
};

}  // namespace deft::ext::gpu::simulated
