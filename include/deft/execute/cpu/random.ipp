// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/random.ipp: random tensors. Element i is a function of key, counter and i alone,
// and its bits are the same on every processor: sums and products here are rounded one by one.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deft/core/philox.hpp>
#include <deft/execute/cpu/kernel_base.hpp>
#include <deft/execute/cpu/pack.hpp>
#include <deft/execute/cpu/tables.hpp>
#include <deft/execute/team.hpp>
#include <deft/op/random_normal.hpp>
#include <deft/op/random_uniform.hpp>
#include <deft/op/truncated_normal.hpp>

namespace deft::cpu {
namespace drawing {
namespace {

/// Philox blocks that are computed side by side; a group is their 64 words, word by word.
constexpr int blocks = 16;
constexpr int group_words = 4 * blocks;

/// The words of group `g`: word w of block 16 g + l stands at 16 w + l.
void draw(std::uint64_t g, std::uint64_t key, std::uint64_t step, std::uint32_t* words) {
  std::uint32_t c0[blocks], c1[blocks], c2[blocks], c3[blocks];
  const std::uint64_t first = g * blocks;
  for (int l = 0; l < blocks; ++l) {
    c0[l] = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(l);
    c1[l] = static_cast<std::uint32_t>(first >> 32);  // a group never crosses 2^32 blocks
    c2[l] = static_cast<std::uint32_t>(step);
    c3[l] = static_cast<std::uint32_t>(step >> 32);
  }
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    for (int l = 0; l < blocks; ++l) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0[l],
                          p1 = std::uint64_t{0xCD9E8D57} * c2[l];
      c0[l] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[l] ^ k0;
      c1[l] = static_cast<std::uint32_t>(p1);
      c2[l] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[l] ^ k1;
      c3[l] = static_cast<std::uint32_t>(p0);
    }
  }
  std::memcpy(words, c0, sizeof c0);
  std::memcpy(words + blocks, c1, sizeof c1);
  std::memcpy(words + 2 * blocks, c2, sizeof c2);
  std::memcpy(words + 3 * blocks, c3, sizeof c3);
}

/// c[0] + c[1] x + … + c[N-1] x^(N-1).
template <class V, int N>
DEFT_ALWAYS_INLINE V polynomial(V x, const double (&c)[N]) {
  V y = c[N - 1];
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) y = y * x + c[i];
  return y;
}

/// The natural logarithm of 0 < p < 1: exponent and mantissa, then the series of artanh.
template <class T, int L>
DEFT_ALWAYS_INLINE pack<T, L> logarithm(pack<T, L> p) {
  using V = pack<T, L>;
  using bits = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  constexpr int mantissa = sizeof(T) == 8 ? 52 : 23;
  constexpr bits bias = sizeof(T) == 8 ? 1023 : 127;
  pack<bits, L> exponent;
  V m;
  for (int i = 0; i < V::count; ++i) {
    auto b = __builtin_bit_cast(vec<bits, V::width>, p.v[i]);
    exponent.v[i] = (b >> mantissa) - bias;
    m.v[i] = __builtin_bit_cast(vec<T, V::width>,
                                (b & ((bits{1} << mantissa) - 1)) | (bias << mantissa));
  }
  V e = num::cast<T>(exponent);
  auto high = m > 1.4142135623730951;
  m = num::select(high, m * 0.5, m);
  e = num::select(high, e + 1, e);
  V s = (m - 1) / (m + 1);
  V s2 = s * s;
  constexpr double odd[] = {2,       2. / 3,  2. / 5,  2. / 7,  2. / 9,
                            2. / 11, 2. / 13, 2. / 15, 2. / 17, 2. / 19};
  return e * 0.6931471805599453 + s * polynomial(s2, odd);
}

/// The normal distribution's inverse: Wichura, "The percentage points of the normal distribution",
/// Applied Statistics 37 (1988), algorithm AS 241, routine PPND16.
template <class V>
DEFT_ALWAYS_INLINE V normal_of(V p) {
  constexpr double a[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                          1.9715909503065514427e+3, 1.3731693765509461125e+4,
                          4.5921953931549871457e+4, 6.7265770927008700853e+4,
                          3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr double b[] = {1.0,
                          4.2313330701600911252e+1,
                          6.8718700749205790830e+2,
                          5.3941960214247511077e+3,
                          2.1213794301586595867e+4,
                          3.9307895800092710610e+4,
                          2.8729085735721942674e+4,
                          5.2264952788528545610e+3};
  constexpr double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                          5.76949722146069140550e0,  3.64784832476320460504e0,
                          1.27045825245236838258e0,  2.41780725177450611770e-1,
                          2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double d[] = {1.0,
                          2.05319162663775882187e0,
                          1.67638483018380384940e0,
                          6.89767334985100004550e-1,
                          1.48103976427480074590e-1,
                          1.51986665636164571966e-2,
                          5.47593808499534494600e-4,
                          1.05075007164441684324e-9};
  constexpr double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                          1.78482653991729133580e0,  2.96560571828504891230e-1,
                          2.65321895265761230930e-2, 1.24266094738807843860e-3,
                          2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double f[] = {1.0,
                          5.99832206555887937690e-1,
                          1.36929880922735805310e-1,
                          1.48753612908506148525e-2,
                          7.86869131145613259100e-4,
                          1.84631831751005468180e-5,
                          1.42151175831644588870e-7,
                          2.04426310338993978564e-15};
  V q = p - 0.5;
  V r = 0.180625 - q * q;
  V middle = q * polynomial(r, a) / polynomial(r, b);
  V tail = num::minimum(p, 1 - p);
  r = num::sqrt(-logarithm(tail));
  V near = r - 1.6, far = r - 5;
  V z = num::select(r <= 5, polynomial(near, c) / polynomial(near, d),
                    polynomial(far, e) / polynomial(far, f));
  z = num::select(q < 0, -z, z);
  return num::select(num::abs(q) <= 0.425, middle, z);
}

constexpr double below_two_deviations = 0.022750131948179195;  // of the normal distribution

enum class law { uniform, normal, truncated };

/// Numbers of law `Law` at a * x + b, from uniform x in [0, 1) or normal x.
template <class T, law Law>
class random_kernel final : public typed_kernel {
 public:
  random_kernel(const op::random& o, double scale, double shift)
      : key_(o.key), every_step_(o.every_step), scale_(scale), shift_(shift) {}
  explicit random_kernel(const op::random_uniform& o) : random_kernel(o, o.high - o.low, o.low) {
    least_ = o.first<T>(), greatest_ = o.last<T>();
  }

  void ready() override {
    elements_ = out().elements();
    cost_ = 20 + static_cast<double>(elements_) * (Law == law::uniform ? 0.5 : 3) * sizeof(T) / 4;
  }

  void run(const kernel_call& c) override {
    T* to = static_cast<T*>(c.out[0]);
    const std::uint64_t step = every_step_ && c.step ? c.step->draw : 0;
    constexpr std::int64_t chunk = group_elements * 64;
    parallel_chunks((elements_ + chunk - 1) / chunk, cost_, [&](std::int64_t p) {
      for (std::int64_t i = p * chunk; i < std::min(elements_, (p + 1) * chunk);
           i += group_elements) {
        if (elements_ - i >= group_elements) {
          group(i / group_elements, step, to + i);
        } else {
          T last[group_elements];
          group(i / group_elements, step, last);
          std::memcpy(to + i, last, static_cast<std::size_t>(elements_ - i) * sizeof(T));
        }
      }
    });
  }

 private:
  static constexpr int words_each = sizeof(T) / 4;
  static constexpr std::int64_t group_elements = group_words / words_each;
  static constexpr int L = register_bytes / 8;
  using V = pack<double, L>;

  /// A float takes 24 bits of a word; a double 26 of each of two, the second 32 words on.
  void group(std::int64_t g, std::uint64_t step, T* to) const {
    std::uint32_t words[group_words];
    draw(static_cast<std::uint64_t>(g), key_, step, words);
    for (int i = 0; i < group_elements; i += L) {
      T x[L];
      double bits[L];  // words_each times 26 of them, or 24
      for (int l = 0; l < L; ++l) {
        const auto word = [&](int w, int shift) {
          return static_cast<double>(static_cast<std::int32_t>(words[w] >> shift));
        };
        bits[l] = words_each == 1 ? word(i + l, 8) : word(i + l, 6) * 0x1p26 + word(i + l + 32, 6);
      }
      // In the middle of its interval where 0 must not come out.
      V u = load<double, L>(bits);
      if (Law == law::normal) u = u + 0.5;
      u = u * (words_each == 1 ? 0x1p-24 : 0x1p-52);
      if constexpr (Law == law::normal)
        u = normal_of(u);
      else if constexpr (Law == law::truncated)
        u = normal_of(u * (1 - 2 * below_two_deviations) + below_two_deviations);
      store(x, num::cast<T>(u * scale_ + shift_));
      if constexpr (Law == law::uniform)  // rounding may leave the interval
        for (T& v : x) v = std::clamp(v, least_, greatest_);
      std::memcpy(to + i, x, sizeof x);
    }
  }

  std::uint64_t key_;
  bool every_step_;
  double scale_, shift_;
  T least_ = 0, greatest_ = 0;  ///< of the interval
  std::int64_t elements_ = 0;
};

template <law Law, class Op, class... Args>
kernel_ptr make(const node_def& n, const Op& o, Args... args) {
  if (o.type == dtype::float32) return std::make_unique<random_kernel<float, Law>>(o, args...);
  if (o.type == dtype::float64) return std::make_unique<random_kernel<double, Law>>(o, args...);
  no_kernel(n, o.type);
}

}  // namespace
}  // namespace drawing

kernel_ptr make_random_uniform(const node_def& n, std::span<const tensor_type>) {
  return drawing::make<drawing::law::uniform>(n, decode<op::random_uniform>(n.attributes));
}
kernel_ptr make_random_normal(const node_def& n, std::span<const tensor_type>) {
  const auto o = decode<op::random_normal>(n.attributes);
  return drawing::make<drawing::law::normal>(n, o, o.stddev, o.mean);
}
kernel_ptr make_truncated_normal(const node_def& n, std::span<const tensor_type>) {
  const auto o = decode<op::truncated_normal>(n.attributes);
  return drawing::make<drawing::law::truncated>(n, o, o.stddev, 0);
}

kernel_table random_kernels() {
  static constexpr kernel_entry table[] = {
      {op::random_uniform::name, floating_dtypes, &make_random_uniform},
      {op::random_normal::name, floating_dtypes, &make_random_normal},
      {op::truncated_normal::name, floating_dtypes, &make_truncated_normal},
  };
  return table;
}

}  // namespace deft::cpu
