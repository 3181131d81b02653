// SPDX-License-Identifier: Apache-2.0
// CUDA's own kernels, compiled by the host's compiler: a thread of the host plays each of the
// device's. Folds must have the bits of the order that row_fold.hpp states.
#include <algorithm>
#include <barrier>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace {

struct index {
  unsigned x;
};
thread_local index threadIdx, blockIdx;

/// The block that runs.
struct block_of_threads {
  explicit block_of_threads(unsigned n) : all(n), words(n) {
    for (unsigned w = 0; w < n; w += 32) warps.push_back(std::make_unique<std::barrier<>>(32));
  }
  std::barrier<> all;
  std::vector<std::unique_ptr<std::barrier<>>> warps;
  std::vector<unsigned> words;
};
block_of_threads* running = nullptr;

void __syncthreads() { running->all.arrive_and_wait(); }
void __syncwarp() { running->warps[threadIdx.x / 32]->arrive_and_wait(); }
unsigned exchanged(unsigned value, unsigned from) {
  running->words[threadIdx.x] = value;
  __syncwarp();
  const unsigned got = running->words[from];
  __syncwarp();
  return got;
}
unsigned __shfl_down_sync(unsigned, unsigned v, unsigned d, int width) {
  const unsigned t = threadIdx.x, w = static_cast<unsigned>(width);
  return exchanged(v, t % w + d < w ? t + d : t);
}
unsigned __shfl_sync(unsigned, unsigned v, int lane, int width) {
  const unsigned w = static_cast<unsigned>(width);
  return exchanged(v, threadIdx.x / w * w + static_cast<unsigned>(lane));
}
template <class T>
T __ldcg(const T* p) {
  return *p;
}

}  // namespace

#define __host__
#define __device__
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static
#define __CUDACC__
#include <deft/kernels/gpu/cuda/launch.hpp>

#include "testing.hpp"

using namespace deft::ext::gpu;

namespace {

/// Calls a kernel with arguments that are given as CUDA's runtime takes them.
std::map<const void*, std::function<void(void**)>>& kernels() {
  static std::map<const void*, std::function<void(void**)>> all;
  return all;
}
template <class... A>
const void* registered(void (*kernel)(A...)) {
  auto call = [kernel]<std::size_t... I>(void** given, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_const_t<A>*>(given[I])...);
  };
  const void* const at = reinterpret_cast<const void*>(kernel);
  kernels()[at] = [call](void** given) { call(given, std::index_sequence_for<A...>()); };
  return at;
}
int launches_of_columns = 0;
std::vector<const void*> of_columns;

/// What the order of a fold is said to be.
struct in_order {
  template <class T>
  T* out(void* p) const {
    return static_cast<T*>(p);
  }
  template <class F>
  void launch(std::int64_t n, const F& f) const {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
  template <class F>
  void fold_rows(const F& f, std::int64_t rows, std::int64_t n) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      const int lanes = fold_lanes(n, columns_together<F>);
      std::vector<typename F::state> s(static_cast<std::size_t>(lanes), f.start());
      for (std::int64_t c = 0; c < n; ++c) {
        auto& lane = s[static_cast<std::size_t>(c / columns_together<F> % lanes)];
        lane = f.add(lane, r, c);
      }
      for (std::size_t d = s.size() / 2; d > 0; d /= 2)
        for (std::size_t l = 0; l < d; ++l) s[l] = f.join(s[l], s[l + d]);
      f.end(r, s[0]);
      if constexpr (row_fold_and_pass<F>)
        for (std::int64_t c = 0; c < n; ++c) f.each(r, c, s[0]);
    }
  }
  template <class F>
  void over_rows(const F& f, std::int64_t rows, std::int64_t n, void* room) {
    if (fold_parts(rows, n) > 1)
      over_parts(*this, f, rows, n, room);
    else
      fold_rows(f, rows, n);
  }
};

template <class T>
struct summed {
  using state = T;
  const float* x;
  T* to;
  std::int64_t row, column;
  T start() const { return T(0); }
  T add(T s, std::int64_t r, std::int64_t c) const {
    return static_cast<T>(s + static_cast<T>(x[r * row + c * column]));
  }
  T join(T a, T b) const { return static_cast<T>(a + b); }
  void end(std::int64_t r, T s) const { to[r] = s; }
};
template <class T>
struct summed_adjacent : summed<T> {
  bool rows_are_adjacent() const { return this->row == 1; }
};
/// The largest and where it is, then each element's distance to it.
struct best {
  float value = -1e30f;
  std::int64_t at = -1;
};
struct distance_to_best {
  using state = best;
  const float* x;
  float* to;
  float* distance;
  std::int64_t row, column;
  best start() const { return {}; }
  best add(best s, std::int64_t r, std::int64_t c) const {
    const float v = x[r * row + c * column];
    return v > s.value ? best{v, c} : s;
  }
  best join(best a, best b) const {
    return b.value > a.value || (b.value == a.value && b.at < a.at && b.at >= 0) ? b : a;
  }
  void end(std::int64_t r, best s) const { to[r] = static_cast<float>(s.at); }
  void each(std::int64_t r, std::int64_t c, best s) const {
    distance[r * row + c * column] = s.value - x[r * row + c * column];
  }
};
struct distance_adjacent : distance_to_best {
  bool rows_are_adjacent() const { return row == 1; }
};

/// Sums by groups of three columns, and the largest, then what each column lacks to the sum.
struct sum_and_largest {
  float sum = 0, largest = -std::numeric_limits<float>::infinity();
};
struct lacking_in_groups {
  using state = sum_and_largest;
  struct elements {
    float v[3];
  };
  static constexpr int together = 3;
  const float* x;
  state* to;
  float* distance;
  std::int64_t row, column;
  state start() const { return {}; }
  state add(state s, std::int64_t r, std::int64_t c) const {
    const float v = x[r * row + c * column];
    return {s.sum + v, larger(s.largest, v)};
  }
  state join(state a, state b) const { return {a.sum + b.sum, larger(a.largest, b.largest)}; }
  void end(std::int64_t r, state s) const { to[r] = s; }
  void each(std::int64_t r, std::int64_t c, state s) const {
    distance[r * row + c * column] = s.sum - x[r * row + c * column];
  }
  elements load(std::int64_t r, std::int64_t c) const {
    elements e;
    for (int u = 0; u < together; ++u) e.v[u] = has(c, u) ? x[r * row + c + u] : state().largest;
    return e;
  }
  state add_all(state s, const elements& e, std::int64_t, std::int64_t c) const {
    for (int u = 0; u < together; ++u)
      if (has(c, u)) s = {s.sum + e.v[u], larger(s.largest, e.v[u])};
    return s;
  }
  float known(std::int64_t, state s) const { return s.sum; }
  void each_of(const elements& e, std::int64_t r, std::int64_t c, float sum) const {
    for (int u = 0; u < together; ++u)
      if (has(c, u)) distance[r * row + c + u] = sum - e.v[u];
  }

  elements none() const { return {state().largest, state().largest, state().largest}; }
  float larger(float a, float b) const { return std::max(a, b); }
  float largest(const elements& e) const { return std::max({e.v[0], e.v[1], e.v[2]}); }
  state start(float most) const { return {0, most}; }
  /// Puts its double into an element's place.
  state settle(state s, elements& e, std::int64_t c) const {
    for (int u = 0; u < together; ++u) {
      if (has(c, u)) s.sum += e.v[u];
      e.v[u] *= 2;
    }
    return s;
  }
  void put(elements e, std::int64_t r, std::int64_t c, float sum) const {
    for (float& v : e.v) v /= 2;
    each_of(e, r, c, sum);
  }

 private:
  bool has(std::int64_t c, int u) const { return c + u < row; }  // which is how many there are
};
int launches_that_hold = 0;
std::vector<const void*> that_hold;

template <class F>
void know() {
  registered(&cuda::fold<F>);
  if constexpr (fold_of_held<F>) that_hold.push_back(registered(&cuda::fold_held<F>));
  if constexpr (fold_of_columns<F>) of_columns.push_back(registered(&cuda::fold_adjacent<F>));
}
template <class F>
void know_all() {
  know<F>();
  know<fold_of_parts<F>>();
  know<fold_of_folds<F>>();
  if constexpr (row_fold_and_pass<F>) registered(&cuda::for_each<pass_of_rows<F>>);
}

/// Folds x on CUDA's kernels and in order, and compares all that they write.
template <class F>
void compare(std::int64_t rows, std::int64_t n, bool columns) {
  know_all<F>();
  INFO(rows, " rows of ", n);
  const auto count = static_cast<std::size_t>(rows * n);
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i)
    x[i] = static_cast<float>((i * 2654435761u >> 7) % 1000) / 37.0f - 9;
  auto folded_by = [&](auto&& s, std::vector<char>& to, std::vector<float>& distance) {
    F f{};
    to.assign(static_cast<std::size_t>(rows) * sizeof(typename F::state), 0);
    distance.assign(count, 0);
    f.x = x.data();
    f.to = reinterpret_cast<decltype(f.to)>(to.data());
    f.row = columns ? 1 : n;
    f.column = columns ? rows : 1;
    if constexpr (requires { f.distance; }) f.distance = distance.data();
    std::vector<char> room(row_room(f, rows, n));
    s.over_rows(f, rows, n, room.data());
  };
  std::vector<char> to[2];
  std::vector<float> distance[2];
  folded_by(cuda::stream(nullptr, fault_report(), nullptr), to[0], distance[0]);
  folded_by(in_order(), to[1], distance[1]);
  CHECK(to[0] == to[1]);
  CHECK(distance[0] == distance[1]);
  // One that belongs to a run that has failed does nothing.
  if (n > 100) return;
  const std::uint32_t failed = 1;
  folded_by(cuda::stream(nullptr, fault_report(), &failed), to[0], distance[0]);
  CHECK(std::all_of(to[0].begin(), to[0].end(), [](char c) { return c == 0; }));
}

}  // namespace

void deft::ext::gpu::cuda::stream::start(const void* kernel, std::int64_t blocks, unsigned threads,
                                         void** arguments, std::span<const int>) {
  const auto& call = kernels().at(kernel);
  launches_of_columns += static_cast<int>(std::count(of_columns.begin(), of_columns.end(), kernel));
  launches_that_hold += static_cast<int>(std::count(that_hold.begin(), that_hold.end(), kernel));
  block_of_threads block(threads);
  running = &block;
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      threadIdx.x = t;
      for (std::int64_t b = 0; b < blocks; ++b) {
        blockIdx.x = static_cast<unsigned>(b);
        call(arguments);
        block.all.arrive_and_wait();
      }
    });
  for (auto& t : all) t.join();
}

TEST_CASE("CUDA's folds have the bits of the stated order") {
  const std::pair<std::int64_t, std::int64_t> shapes[] = {
      {1, 1},     {3, 2},    {300, 3},    {7, 5},      {70, 8},    {33, 17},
      {5, 31},    {9, 32},   {40, 33},    {17, 100},   {3, 2048},  {2, 2049},
      {19, 4095}, {3, 5000}, {2, 16'384}, {2, 16'385}, {9, 40'000}};
  for (auto [rows, n] : shapes) {
    compare<summed<float>>(rows, n, false);
    compare<summed<float>>(rows, n, true);
    compare<summed_adjacent<float>>(rows, n, true);
    compare<summed_adjacent<double>>(rows, n, true);
    compare<summed_adjacent<std::uint8_t>>(rows, n, true);
    compare<summed<std::uint8_t>>(rows, n, false);
    compare<distance_to_best>(rows, n, false);
    compare<distance_adjacent>(rows, n, true);
    compare<lacking_in_groups>(rows, n, false);
  }
  CHECK(launches_of_columns > 60);
  CHECK(launches_that_hold > 8);
}

TEST_CASE("a launch runs each number once") {
  struct counted {
    int* to;
    void operator()(std::int64_t i) const { ++to[i]; }
  };
  registered(&cuda::for_each<counted>);
  for (std::size_t n : {0, 1, 255, 256, 257, 1000}) {
    std::vector<int> seen(n);
    cuda::stream(nullptr, fault_report(), nullptr)
        .launch(static_cast<std::int64_t>(n), counted{seen.data()});
    CHECK(seen == std::vector<int>(n, 1));
  }
}
