// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/launch.hpp: the CUDA kernels that run functors: one for each element, and
// one that folds rows.
#pragma once
#include <deft/kernels/gpu/cuda/stream.hpp>

#ifdef __CUDACC__
#include <algorithm>
#include <cstring>

namespace deft::ext::gpu::cuda {

namespace {
/// The architectures that nvcc compiles this file for.
#ifdef __CUDA_ARCH_LIST__
constexpr int compiled_for[] = {__CUDA_ARCH_LIST__};
#else
constexpr std::span<const int> compiled_for;
#endif
}  // namespace

/// Threads of a block.
inline constexpr unsigned block_threads = 256;
inline constexpr int most_threads = 512;

/// Whether the run that an update belongs to has failed, as far as earlier kernels tell.
__device__ inline bool is_void(const std::uint32_t* failed) { return failed && __ldcg(failed); }

// The functor is each kernel's last parameter: see places.

/// f(i) for 0 <= i < n.
template <class F>
__global__ void __launch_bounds__(block_threads)
    for_each(const std::uint32_t* failed, const std::int64_t n, const __grid_constant__ F f) {
  if (is_void(failed)) return;
  const std::int64_t i = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  if (i < n) f(i);
}

/// The value of lane + d, among the lanes that fold a row.
template <class State>
__device__ State from_lane(const State& s, int d, int lanes) {
  constexpr std::size_t words = (sizeof(State) + 3) / 4;
  unsigned w[words] = {};
  memcpy(w, &s, sizeof(State));
  for (auto& x : w) x = __shfl_down_sync(~0u, x, static_cast<unsigned>(d), lanes);
  State other;
  memcpy(&other, w, sizeof(State));
  return other;
}
/// The value of the first of them.
template <class State>
__device__ State from_first(const State& s, int lanes) {
  constexpr std::size_t words = (sizeof(State) + 3) / 4;
  unsigned w[words] = {};
  memcpy(w, &s, sizeof(State));
  for (auto& x : w) x = __shfl_sync(~0u, x, 0, lanes);
  State first;
  memcpy(&first, w, sizeof(State));
  return first;
}

/// Joins the values of `lanes` lanes of a warp: lane 0 has the result.
template <class F>
__device__ typename F::state fold_warp(const F& f, typename F::state s, int lane, int lanes) {
  for (int d = lanes / 2; d > 0; d /= 2) {
    const auto other = from_lane(s, d, lanes);
    if (lane < d) s = f.join(s, other);
  }
  return s;
}

/// Room in shared memory for N values, which need not have a constructor.
template <class State, int N>
union shared_states {
  unsigned char bytes[N * sizeof(State)];
  alignas(16) unsigned char aligned;
  __device__ State& operator[](int i) { return reinterpret_cast<State*>(bytes)[i]; }
};

/// Folds rows in the order of row_fold.hpp, a row by `lanes` threads that follow each other: up to
/// 32 of a warp, or the 256 of a block.
template <class F>
__global__ void __launch_bounds__(block_threads)
    fold(const std::uint32_t* failed, const std::int64_t rows, const std::int64_t n,
         const int log_lanes, const __grid_constant__ F f) {
  if (is_void(failed)) return;
  using state = typename F::state;
  const int lanes = 1 << log_lanes;
  constexpr int half = block_threads / 2;
  __shared__ shared_states<state, half> room;
  const int thread = static_cast<int>(threadIdx.x), lane = thread & (lanes - 1);
  const std::int64_t row = (std::int64_t{blockIdx.x} * block_threads + thread) >> log_lanes;
  state s = f.start();
  if (row < rows) {
    if constexpr (fold_of_groups<F>) {
      for (std::int64_t c = lane * F::together; c < n; c += lanes * F::together)
        s = f.add_all(s, f.load(row, c), row, c);
    } else {
#pragma unroll 4
      for (std::int64_t c = lane; c < n; c += lanes) s = f.add(s, row, c);
    }
  }

  for (int d = lanes / 2; d >= 32; d /= 2) {
    if (lane >= d && lane < 2 * d) room[lane - d] = s;
    __syncthreads();
    if (lane < d) s = f.join(s, room[lane]);
    __syncthreads();
  }
  const int width = lanes < 32 ? lanes : 32;
  s = fold_warp(f, s, lane & 31, width);
  if (lane == 0 && row < rows) f.end(row, s);
  if constexpr (row_fold_and_pass<F>) {
    s = from_first(s, width);
    if (lanes > 32) {
      if (thread == 0) room[0] = s;
      __syncthreads();
      s = room[0];
    } else {
      __syncwarp();
    }
    if (row >= rows) return;
    if constexpr (fold_and_pass_of_groups<F>) {
      const auto known = f.known(row, s);
      for (std::int64_t c = lane * F::together; c < n; c += lanes * F::together)
        f.each_of(f.load(row, c), row, c, known);
    } else {
      for (std::int64_t c = lane; c < n; c += lanes) f.each(row, c, s);
    }
  }
}

/// Groups of columns that a thread of fold_held has at most.
inline constexpr int most_held = 8;
/// A row by a warp, which holds it.
template <fold_of_held F>
__global__ void __launch_bounds__(block_threads)
    fold_held(const std::uint32_t* failed, const std::int64_t rows, const std::int64_t n,
              const __grid_constant__ F f) {
  if (is_void(failed)) return;
  constexpr int lanes = 32, wide = lanes * F::together;
  const int lane = static_cast<int>(threadIdx.x) % lanes, first = lane * F::together;
  const std::int64_t row =
      std::int64_t{blockIdx.x} * (block_threads / lanes) + static_cast<int>(threadIdx.x) / lanes;
  if (row >= rows) return;
  const int end = static_cast<int>(n);
  typename F::elements held[most_held];
#pragma unroll
  for (int k = 0; k < most_held; ++k) {
    const int c = k * wide + first;
    held[k] = c < end ? f.load(row, c) : f.none();
  }
  auto largest = f.largest(held[0]);
#pragma unroll
  for (int k = 1; k < most_held; ++k)
    if (k * wide < end) largest = f.larger(largest, f.largest(held[k]));
  for (int d = lanes / 2; d > 0; d /= 2) largest = f.larger(largest, from_lane(largest, d, lanes));
  auto s = f.start(from_first(largest, lanes));
#pragma unroll
  for (int k = 0; k < most_held; ++k)
    if (k * wide < end) s = f.settle(s, held[k], k * wide + first);
  s = from_first(fold_warp(f, s, lane, lanes), lanes);
  if constexpr (fold_and_pass_of_held<F>) {
    const auto known = f.known(row, s);
#pragma unroll
    for (int k = 0; k < most_held; ++k)
      if (const int c = k * wide + first; c < end) f.put(held[k], row, c, known);
  }
  if (lane == 0) f.end(row, s);
}

/// Of a row's 256 lanes, how many a thread has where rows are adjacent: as many as registers hold,
/// as whole lines of 128 bytes are read the quicker.
template <class F>
inline constexpr int lanes_of_thread = sizeof(typename F::state) <= 4 ? 16 : 8;

/// The same where rows are adjacent: the threads of a warp have rows that follow each other, those
/// of a block `lanes` lanes, up to 32, of each, or every 16th or 32nd lane of 256.
template <class F>
__global__ void __launch_bounds__(most_threads, sizeof(typename F::state) <= 8 ? 2 : 1)
    fold_adjacent(const std::uint32_t* failed, const std::int64_t rows, const std::int64_t n,
                  const int log_lanes, const int log_wide, const __grid_constant__ F f) {
  if (is_void(failed)) return;
  using state = typename F::state;
  __shared__ shared_states<state, most_threads / 2> room;
  const int lanes = 1 << log_lanes, wide = 1 << log_wide;
  constexpr int K = lanes_of_thread<F>, apart = 256 / K;
  const int deep = lanes <= 32 ? lanes : apart;
  const int y = static_cast<int>(threadIdx.x) >> log_wide;
  const int x = static_cast<int>(threadIdx.x) & (wide - 1);
  const std::int64_t row = std::int64_t{blockIdx.x} * wide + x;
  state s = f.start();
  if (lanes <= 32) {
    if (row < rows) {
#pragma unroll 4
      for (std::int64_t c = y; c < n; c += lanes) s = f.add(s, row, c);
    }
  } else if (row < rows) {
    state part[K];
#pragma unroll
    for (auto& p : part) p = s;
    std::int64_t c = y;
    for (; c + (K - 1) * apart < n; c += lanes)
#pragma unroll
      for (int k = 0; k < K; ++k) part[k] = f.add(part[k], row, c + apart * k);
#pragma unroll
    for (int k = 0; k < K; ++k)
      if (c + apart * k < n) part[k] = f.add(part[k], row, c + apart * k);
#pragma unroll
    // One loop, as a loop around another one is not unrolled, and `part` then not in registers.
    for (int k = K - 1; k > 0; --k) {
      const int d = k >= 8 ? 8 : k >= 4 ? 4 : k >= 2 ? 2 : 1;
      part[k - d] = f.join(part[k - d], part[k]);
    }
    s = part[0];
  }

  for (int d = deep / 2; d > 0; d /= 2) {
    if (y >= d && y < 2 * d) room[(y - d) * wide + x] = s;
    __syncthreads();
    if (y < d) s = f.join(s, room[y * wide + x]);
    __syncthreads();
  }
  if (y == 0 && row < rows) f.end(row, s);
  if constexpr (row_fold_and_pass<F>) {
    if (y == 0) room[x] = s;
    __syncthreads();
    s = room[x];
    if (row < rows)
      for (std::int64_t c = y; c < n; c += deep) f.each(row, c, s);
  }
}

template <class F>
void stream::launch(std::int64_t n, const F& f) {
  if (n <= 0) return;
  void* arguments[] = {&failed_, &n, const_cast<F*>(&f)};
  start(reinterpret_cast<const void*>(&for_each<F>), (n + block_threads - 1) / block_threads,
        block_threads, arguments, compiled_for);
}

template <row_fold F>
void stream::fold_rows(const F& f, std::int64_t rows, std::int64_t n) {
  if (rows <= 0) return;
  constexpr int together = columns_together<F>;
  const int lanes = fold_lanes(n, together);
  int log_lanes = 0;
  while (1 << log_lanes < lanes) ++log_lanes;
  if constexpr (fold_of_columns<F>) {
    if (f.rows_are_adjacent()) {
      // 32 threads along the rows, but no more than 512 in all, and not far fewer.
      constexpr int log_apart = lanes_of_thread<F> == 16 ? 4 : 5;
      const int log_deep = log_lanes <= 5 ? log_lanes : log_apart;
      int log_wide = log_deep == 5 ? 4 : std::max(5, 8 - log_deep);
      const int wide = 1 << log_wide;
      void* arguments[] = {&failed_, &rows, &n, &log_lanes, &log_wide, const_cast<F*>(&f)};
      start(reinterpret_cast<const void*>(&fold_adjacent<F>), (rows + wide - 1) / wide,
            1u << (log_wide + log_deep), arguments, compiled_for);
      return;
    }
  }
  const int some = static_cast<int>(block_threads) / lanes;
  const std::int64_t blocks = (rows + some - 1) / some;
  if constexpr (fold_of_held<F>) {
    if (lanes == 32 && n <= 32 * together * most_held) {
      void* arguments[] = {&failed_, &rows, &n, const_cast<F*>(&f)};
      start(reinterpret_cast<const void*>(&fold_held<F>), blocks, block_threads, arguments,
            compiled_for);
      return;
    }
  }
  void* arguments[] = {&failed_, &rows, &n, &log_lanes, const_cast<F*>(&f)};
  start(reinterpret_cast<const void*>(&fold<F>), blocks, block_threads, arguments, compiled_for);
}

}  // namespace deft::ext::gpu::cuda
#endif
