// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/prelude.hpp: what generated CUDA source begins with: the operators and functions
// that bodies as text are written in, with num::lane's meaning, and what kernels of programs share.
#pragma once
#include <deft/core/config.hpp>
#include <string_view>

namespace deft::ext::gpu {

/// CUDA C++17, without headers. A test holds each function against num::lane.
inline constexpr std::string_view prelude = R"cuda(
#define DEVICE static __device__ __forceinline__
#define MEMBER __device__ __forceinline__
// Constants as std::to_chars writes them.
#define inf __int_as_float(0x7f800000)
#define nan __int_as_float(0x7fc00000)

// Types of 16 bits, which are not computed with; deft/core/half.hpp has the rules. Doubles are
// rounded to odd first, so that they are rounded once.
DEVICE float rounded_to_odd(double v) {
  const float nearest = static_cast<float>(v);
  if (nearest == v || v != v) return nearest;
  unsigned bits = __float_as_uint(nearest);
  if ((nearest > v) == (v > 0)) --bits;
  return __uint_as_float(bits | 1u);
}
struct bfloat16 {
  unsigned short bits;
  bfloat16() = default;
  MEMBER bfloat16(float v) {
    const unsigned x = __float_as_uint(v);
    bits = static_cast<unsigned short>(v != v ? 0x7fc0u : (x + (x >> 16 & 1u) + 0x7fffu) >> 16);
  }
  MEMBER bfloat16(double v) : bfloat16(rounded_to_odd(v)) {}
  template <class C> MEMBER explicit bfloat16(C c) : bfloat16(static_cast<float>(c)) {}
  MEMBER operator float() const { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
};
struct float16 {
  unsigned short bits;
  float16() = default;
  MEMBER float16(float v) {
    const unsigned x = __float_as_uint(v), sign = x >> 16 & 0x8000u, magnitude = x & 0x7fffffffu;
    unsigned to;
    if (magnitude > 0x7f800000u) to = 0x7e00u;
    else if (magnitude >= 0x47800000u) to = sign | 0x7c00u;
    else if (magnitude < 0x38800000u)
      to = sign | (__float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000u);
    else to = sign | (magnitude - 0x38000000u + (magnitude >> 13 & 1u) + 0xfffu) >> 13;
    bits = static_cast<unsigned short>(to);
  }
  MEMBER float16(double v) : float16(rounded_to_odd(v)) {}
  template <class C> MEMBER explicit float16(C c) : float16(static_cast<float>(c)) {}
  MEMBER operator float() const {
    const unsigned sign = (bits & 0x8000u) << 16, magnitude = (bits & 0x7fffu) << 13;
    const unsigned finite = __float_as_uint(__uint_as_float(magnitude) * 0x1p112f);
    return __uint_as_float(sign | (magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : finite));
  }
};

namespace num {

enum : unsigned { no_fault, div_fault, mod_fault };

template <bool Long> struct wrapping_integer { typedef unsigned type; };
template <> struct wrapping_integer<true> { typedef unsigned long long type; };
// Of integers.
template <class T> struct traits {
  static constexpr bool floating = false, integral = true, negative = T(-1) < T(0);
  typedef typename wrapping_integer<sizeof(T) == 8>::type wrapping;
  static constexpr T lowest = negative ? T(wrapping(1) << (8 * sizeof(T) - 1)) : T(0);
  static constexpr T highest = T(~lowest);
};
template <> struct traits<float> {
  static constexpr bool floating = true, integral = false, negative = true;
};
template <> struct traits<double> : traits<float> {};
template <> struct traits<bfloat16> : traits<float> {};
template <> struct traits<float16> : traits<float> {};
template <> struct traits<bool> {
  static constexpr bool floating = false, integral = false, negative = false;
};

// One T, and what went wrong in what it was computed from.
template <class T> struct number {
  T v;
  unsigned fault;
  template <class C> MEMBER constexpr explicit number(C c) : v(static_cast<T>(c)), fault(no_fault) {}
  MEMBER constexpr number(T x, unsigned f) : v(x), fault(f) {}
};
template <class A, class B> DEVICE unsigned either(number<A> a, number<B> b) {
  return a.fault ? a.fault : b.fault;
}
// The value; the first fault is kept.
template <class T> DEVICE T take(number<T> x, unsigned& fault) {
  if (!fault) fault = x.fault;
  return x.v;
}

// Integers wrap: in the unsigned type, where overflow is defined.
#define WRAP(op) T(typename traits<T>::wrapping(a.v) op typename traits<T>::wrapping(b.v))
template <class T> DEVICE number<T> operator+(number<T> a, number<T> b) {
  if constexpr (traits<T>::floating) return {a.v + b.v, either(a, b)};
  else return {WRAP(+), either(a, b)};
}
template <class T> DEVICE number<T> operator-(number<T> a, number<T> b) {
  if constexpr (traits<T>::floating) return {a.v - b.v, either(a, b)};
  else return {WRAP(-), either(a, b)};
}
// Rounded by itself: nothing joins it with a sum.
DEVICE float product(float a, float b) { return __fmul_rn(a, b); }
DEVICE double product(double a, double b) { return __dmul_rn(a, b); }
template <class T> DEVICE number<T> operator*(number<T> a, number<T> b) {
  if constexpr (traits<T>::floating) return {product(a.v, b.v), either(a, b)};
  else return {WRAP(*), either(a, b)};
}
template <class T> DEVICE number<T> operator-(number<T> a) {
  if constexpr (traits<T>::floating) return {-a.v, a.fault};
  else return {T(0 - typename traits<T>::wrapping(a.v)), a.fault};
}
template <class T> DEVICE number<T> operator/(number<T> a, number<T> b) {
  if constexpr (traits<T>::floating) return {a.v / b.v, either(a, b)};
  else {
    if (b.v == 0) return {T(0), div_fault};
    if constexpr (traits<T>::negative)
      if (b.v == -1) return {(-a).v, either(a, b)};  // the smallest integer wraps
    return {T(a.v / b.v), either(a, b)};
  }
}
template <class T> DEVICE number<T> operator%(number<T> a, number<T> b) {
  if (b.v == 0) return {T(0), mod_fault};
  if constexpr (traits<T>::negative)
    if (b.v == -1) return {T(0), either(a, b)};
  return {T(a.v % b.v), either(a, b)};
}

DEVICE float exp_of(float x) { return ::expf(x); }
DEVICE double exp_of(double x) { return ::exp(x); }
DEVICE float expm1_of(float x) { return ::expm1f(x); }
DEVICE double expm1_of(double x) { return ::expm1(x); }
DEVICE float log_of(float x) { return ::logf(x); }
DEVICE double log_of(double x) { return ::log(x); }
DEVICE float log1p_of(float x) { return ::log1pf(x); }
DEVICE double log1p_of(double x) { return ::log1p(x); }
DEVICE float tanh_of(float x) { return ::tanhf(x); }
DEVICE double tanh_of(double x) { return ::tanh(x); }
DEVICE float erf_of(float x) { return ::erff(x); }
DEVICE double erf_of(double x) { return ::erf(x); }
DEVICE float erfcx_of(float x) { return ::erfcxf(x); }
DEVICE double erfcx_of(double x) { return ::erfcx(x); }
DEVICE float sin_of(float x) { return ::sinf(x); }
DEVICE double sin_of(double x) { return ::sin(x); }
DEVICE float cos_of(float x) { return ::cosf(x); }
DEVICE double cos_of(double x) { return ::cos(x); }
DEVICE float sqrt_of(float x) { return ::sqrtf(x); }
DEVICE double sqrt_of(double x) { return ::sqrt(x); }
DEVICE float pow_of(float x, float y) { return ::powf(x, y); }
DEVICE double pow_of(double x, double y) { return ::pow(x, y); }
DEVICE float floor_of(float x) { return ::floorf(x); }
DEVICE double floor_of(double x) { return ::floor(x); }
template <class T> DEVICE number<T> exp(number<T> x) { return {exp_of(x.v), x.fault}; }
template <class T> DEVICE number<T> expm1(number<T> x) { return {expm1_of(x.v), x.fault}; }
template <class T> DEVICE number<T> log(number<T> x) { return {log_of(x.v), x.fault}; }
template <class T> DEVICE number<T> log1p(number<T> x) { return {log1p_of(x.v), x.fault}; }
template <class T> DEVICE number<T> tanh(number<T> x) { return {tanh_of(x.v), x.fault}; }
template <class T> DEVICE number<T> erf(number<T> x) { return {erf_of(x.v), x.fault}; }
template <class T> DEVICE number<T> erfcx(number<T> x) { return {erfcx_of(x.v), x.fault}; }
template <class T> DEVICE number<T> sin(number<T> x) { return {sin_of(x.v), x.fault}; }
template <class T> DEVICE number<T> cos(number<T> x) { return {cos_of(x.v), x.fault}; }
template <class T> DEVICE number<T> sqrt(number<T> x) { return {sqrt_of(x.v), x.fault}; }
template <class T> DEVICE number<T> pow(number<T> x, number<T> y) {
  return {pow_of(x.v, y.v), either(x, y)};
}
template <class T> DEVICE number<T> floor(number<T> x) { return {floor_of(x.v), x.fault}; }
template <class T> DEVICE number<T> abs(number<T> x) {
  if constexpr (traits<T>::floating) return {x.v < 0 ? -x.v : x.v + 0, x.fault};  // of -0, too
  else if constexpr (traits<T>::negative) return x.v < 0 ? -x : x;
  else return x;
}
// NaN goes through from either side; of equal values the first.
template <class T> DEVICE number<T> maximum(number<T> a, number<T> b) {
  return {b.v > a.v || b.v != b.v ? b.v : a.v, either(a, b)};
}
template <class T> DEVICE number<T> minimum(number<T> a, number<T> b) {
  return {b.v < a.v || b.v != b.v ? b.v : a.v, either(a, b)};
}

template <class T> DEVICE number<bool> operator<(number<T> a, number<T> b) {
  return {a.v < b.v, either(a, b)};
}
template <class T> DEVICE number<bool> operator<=(number<T> a, number<T> b) {
  return {a.v <= b.v, either(a, b)};
}
template <class T> DEVICE number<bool> operator==(number<T> a, number<T> b) {
  return {a.v == b.v, either(a, b)};
}
DEVICE number<bool> operator&&(number<bool> a, number<bool> b) {
  return {a.v && b.v, either(a, b)};
}
DEVICE number<bool> operator||(number<bool> a, number<bool> b) {
  return {a.v || b.v, either(a, b)};
}
DEVICE number<bool> operator!(number<bool> a) { return {!a.v, a.fault}; }
// Both sides are evaluated: a fault in either counts.
template <class T> DEVICE number<T> select(number<bool> c, number<T> a, number<T> b) {
  return {c.v ? a.v : b.v, c.fault ? c.fault : either(a, b)};
}
template <class To, class From> DEVICE To cast_scalar(From v) {
  if constexpr (traits<To>::integral && traits<From>::floating) {
    if (v != v) return 0;
    // The bounds as From: the largest integer may round up to one beyond it.
    constexpr From low = From(traits<To>::lowest), high = From(traits<To>::highest);
    if (v <= low) return traits<To>::lowest;
    if (v >= high) return traits<To>::highest;
    return static_cast<To>(v);
  } else if constexpr (!traits<To>::integral && !traits<To>::floating)
    return v != From(0);
  else
    return static_cast<To>(v);
}
template <class To, class From> DEVICE number<To> cast(number<From> x) {
  return {cast_scalar<To>(x.v), x.fault};
}

// Folds. What leaves every value as it is, is a negative zero: of a sum.
struct sum {
  template <class T> static MEMBER T neutral() { return -T(0); }
  template <class T> static MEMBER T combine(T a, T b) { return (number<T>(a) + number<T>(b)).v; }
};
struct largest {
  template <class T> static MEMBER T neutral() {
    if constexpr (traits<T>::floating) return T(-inf);
    else return traits<T>::lowest;
  }
  template <class T> static MEMBER T combine(T a, T b) {
    return maximum(number<T>(a), number<T>(b)).v;
  }
};
struct smallest {
  template <class T> static MEMBER T neutral() {
    if constexpr (traits<T>::floating) return T(inf);
    else return traits<T>::highest;
  }
  template <class T> static MEMBER T combine(T a, T b) {
    return minimum(number<T>(a), number<T>(b)).v;
  }
};

}  // namespace num

// The first fault of a run, as deft/kernels/gpu/fault.hpp has it.
struct fault_record {
  unsigned taken, item, kind;
  long long value, limit, row;
  fault_record* mirror;
};
DEVICE void report(fault_record* r, unsigned item, unsigned kind) {
  if (atomicCAS(&r->taken, 0u, 1u)) return;
  fault_record* const to = r->mirror ? r->mirror : r;
  to->item = item, to->kind = kind;
  to->value = to->limit = to->row = 0;
  if (to != r) to->taken = 1;
}
// Of an update: whether it may change anything.
DEVICE bool has_failed(const fault_record* r) {
  return *static_cast<const volatile unsigned*>(&r->taken) != 0;
}

// Literals, of 8 bytes each.
template <class T> DEVICE T literal(long long bits) { return static_cast<T>(bits); }
template <> MEMBER float literal<float>(long long bits) {
  return __int_as_float(static_cast<int>(bits));
}
template <> MEMBER double literal<double>(long long bits) { return __longlong_as_double(bits); }
template <> MEMBER bfloat16 literal<bfloat16>(long long bits) {
  bfloat16 x;
  x.bits = static_cast<unsigned short>(bits);
  return x;
}
template <> MEMBER float16 literal<float16>(long long bits) {
  float16 x;
  x.bits = static_cast<unsigned short>(bits);
  return x;
}

// Division by a number that the host knew, as deft/kernels/gpu/divider.hpp has it.
struct divider {
  long long by;
  unsigned multiplier, shift;
  // Divides n, and returns the remainder.
  MEMBER long long cut(long long& n) const {
    long long q;
    if (n >> 31 || by >> 31) q = n / by;
    else {
      const unsigned m = static_cast<unsigned>(n);
      const unsigned high = static_cast<unsigned>(
          static_cast<unsigned long long>(m) * multiplier >> 32);
      q = (high + m) >> shift;
    }
    const long long rest = n - q * by;
    n = q;
    return rest;
  }
};

// N elements that are read or written at once, 16 bytes at most.
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) group {
  T v[N];
};
template <class T, int N> DEVICE group<T, N> load(const void* from, long long at) {
  return *reinterpret_cast<const group<T, N>*>(static_cast<const T*>(from) + at);
}
template <class T, int N> DEVICE void store(void* to, long long at, const group<T, N>& g) {
  *reinterpret_cast<group<T, N>*>(static_cast<T*>(to) + at) = g;
}

// The fold of a row by its lanes, l joined with l + lanes / 2 first; every lane has it. All lanes
// of a warp come here.
template <class T> DEVICE T down(T v, int d, int lanes) {
  if constexpr (sizeof(T) < 4) return T(__shfl_down_sync(0xffffffffu, int(v), d, lanes));
  else return __shfl_down_sync(0xffffffffu, v, d, lanes);
}
template <class T> DEVICE T first(T v, int lanes) {
  if constexpr (sizeof(T) < 4) return T(__shfl_sync(0xffffffffu, int(v), 0, lanes));
  else return __shfl_sync(0xffffffffu, v, 0, lanes);
}
template <class How, class T> DEVICE T fold_lanes(T v, int lanes) {
  for (int d = lanes / 2; d > 0; d /= 2) v = How::combine(v, down(v, d, lanes));
  return first(v, lanes);
}
// Likewise of what a block of up to 512 threads has, `wide` folds side by side, a power of two,
// each of so many lanes, thread wide * l + x of fold x; further threads have the neutral.
template <class How, class T> DEVICE T fold_block(T v, int lanes, int wide = 1) {
  __shared__ T s[512];
  const int t = static_cast<int>(threadIdx.x);
  s[t] = v;
  __syncthreads();
  for (int d = lanes / 2 * wide; d >= wide; d /= 2) {
    if (t < d) s[t] = How::combine(s[t], s[t + d]);
    __syncthreads();
  }
  const T all = s[t % wide];
  __syncthreads();
  return all;
}
template <class How, bool block, class T> DEVICE T fold_row(T v, int lanes) {
  if constexpr (block) return fold_block<How>(v, 256);
  else return fold_lanes<How>(v, lanes);
}
// Where a fold of parts keeps what it has of each, 8 bytes.
template <class T> DEVICE T* part_of(void* scratch, long long fold, long long parts, long long p) {
  return reinterpret_cast<T*>(static_cast<char*>(scratch) + 8 * (fold * parts + p));
}
)cuda";

}  // namespace deft::ext::gpu
