// SPDX-License-Identifier: Apache-2.0
#include "fake_cublaslt.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deft/kernels/gpu/cuda/cublaslt.hpp>
#include <mutex>
#include <thread>

using namespace deft::ext::gpu::cuda;

namespace {

constexpr int invalid_value = 7;

fake::cublaslt_state& state() {
  static auto& s = *new fake::cublaslt_state;
  return s;
}
std::mutex guard;
/// Answers that something is wrong with a call.
int fault(const std::string& what) {
  std::lock_guard lock(guard);
  state().faults.push_back(what);
  return invalid_value;
}

struct product {
  int compute, scale;
  int form[2];
};
struct layout {
  int type;
  std::uint64_t rows, columns;
  std::int64_t ld;
  std::int32_t count = 1;
  std::int64_t apart = 0;
};
struct preference {
  std::uint64_t workspace = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};

template <class T>
int make(void** to, T value) {
  *to = new T(value);
  ++state().descriptors;
  return cublaslt::success;
}
template <class T>
int destroy(void* what) {
  delete static_cast<T*>(what);
  --state().descriptors;
  return cublaslt::success;
}
template <class T>
int set(T& to, const void* from, std::size_t bytes) {
  if (bytes != sizeof to) return fault("an attribute has another size");
  std::memcpy(&to, from, bytes);
  return cublaslt::success;
}

/// What an algorithm was found for.
struct choice {
  product what;
  layout a, b, d;
  std::uint32_t alignment[4];
  std::uint32_t workspace;
};
std::vector<choice>& choices() {
  static auto& c = *new std::vector<choice>;
  return c;
}
bool equal(const layout& a, const layout& b) {
  return a.type == b.type && a.rows == b.rows && a.columns == b.columns && a.ld == b.ld &&
         a.count == b.count && a.apart == b.apart;
}

/// Whether they describe a product, d = op(a) op(b).
bool fits(const product& p, const layout& a, const layout& b, const layout& d) {
  const int type = p.compute == cublaslt::compute_64 ? cublaslt::real_64 : cublaslt::real_32;
  if (p.scale != type || a.type != type || b.type != type || d.type != type)
    return fault("types differ"), false;
  for (const layout* l : {&a, &b, &d})
    if (l->rows == 0 || l->columns == 0 || l->ld < static_cast<std::int64_t>(l->rows))
      return fault("a matrix is not one"), false;
  const auto rows = p.form[0] ? a.columns : a.rows, inner = p.form[0] ? a.rows : a.columns;
  const auto columns = p.form[1] ? b.rows : b.columns, other = p.form[1] ? b.columns : b.rows;
  if (inner != other || d.rows != rows || d.columns != columns)
    return fault("extents differ"), false;
  if (a.count < 1 || a.count != d.count || b.count != d.count)
    return fault("batches differ"), false;
  if (d.count > 1 && d.apart != d.ld * static_cast<std::int64_t>(d.columns))
    return fault("results are not one behind the other"), false;
  return true;
}

template <class T>
void multiply(const choice& c, const T* a, const T* b, T* d) {
  const auto inner = c.what.form[0] ? c.a.rows : c.a.columns;
  auto at = [](const layout& l, std::uint64_t row, std::uint64_t column) {
    return column * static_cast<std::uint64_t>(l.ld) + row;
  };
  for (std::int32_t number = 0; number < c.d.count;
       ++number, a += c.a.apart, b += c.b.apart, d += c.d.apart)
    for (std::uint64_t j = 0; j < c.d.columns; ++j)
      for (std::uint64_t i = 0; i < c.d.rows; ++i) {
        double sum = 0;
        for (std::uint64_t k = 0; k < inner; ++k)
          sum += double{c.what.form[0] ? a[at(c.a, k, i)] : a[at(c.a, i, k)]} *
                 double{c.what.form[1] ? b[at(c.b, j, k)] : b[at(c.b, k, j)]};
        d[j * c.d.rows + i] = static_cast<T>(sum);
      }
}

}  // namespace

extern "C" {

fake::cublaslt_state* fake_cublaslt() { return &state(); }

const char* cublasLtGetStatusString(int status) {
  return status == cublaslt::not_supported ? "it is not supported" : "it failed";
}
int cublasLtCreate(void** handle) {
  if (state().no_handle) return state().no_handle;
  *handle = &state();
  ++state().handles;
  return cublaslt::success;
}
int cublasLtDestroy(void*) {
  --state().handles;
  return cublaslt::success;
}

int cublasLtMatmulDescCreate(void** to, int compute, int scale) {
  return make(to, product{compute, scale, {}});
}
int cublasLtMatmulDescDestroy(void* p) { return destroy<product>(p); }
int cublasLtMatmulDescSetAttribute(void* p, int attribute, const void* from, std::size_t bytes) {
  if (attribute != cublaslt::transpose_a && attribute != cublaslt::transpose_b)
    return fault("an attribute of a product");
  return set(static_cast<product*>(p)->form[attribute - cublaslt::transpose_a], from, bytes);
}
int cublasLtMatrixLayoutCreate(void** to, int type, std::uint64_t rows, std::uint64_t columns,
                               std::int64_t ld) {
  layout l;
  l.type = type, l.rows = rows, l.columns = columns, l.ld = ld;
  return make(to, l);
}
int cublasLtMatrixLayoutDestroy(void* l) { return destroy<layout>(l); }
int cublasLtMatrixLayoutSetAttribute(void* to, int attribute, const void* from, std::size_t bytes) {
  auto& l = *static_cast<layout*>(to);
  if (attribute == cublaslt::batch_count) return set(l.count, from, bytes);
  if (attribute == cublaslt::batch_offset) return set(l.apart, from, bytes);
  return fault("an attribute of a layout");
}
int cublasLtMatmulPreferenceCreate(void** to) { return make(to, preference()); }
int cublasLtMatmulPreferenceDestroy(void* p) { return destroy<preference>(p); }
int cublasLtMatmulPreferenceSetAttribute(void* to, int attribute, const void* from,
                                         std::size_t bytes) {
  auto& p = *static_cast<preference*>(to);
  if (attribute == cublaslt::most_workspace) return set(p.workspace, from, bytes);
  const int matrix = attribute - cublaslt::alignment_of_a;
  if (matrix < 0 || matrix > 3) return fault("an attribute of a preference");
  return set(p.alignment[matrix], from, bytes);
}

int cublasLtMatmulAlgoGetHeuristic(void* handle, void* what, void* a, void* b, void* c, void* d,
                                   void* preferred, int most, cublaslt::heuristic* results,
                                   int* found) {
  ++state().asked;
  if (handle != &state() || most < 1) return fault("no handle, or no room");
  if (state().no_algorithm) return state().no_algorithm;
  *found = state().none_found ? 0 : 1;
  if (!*found) return cublaslt::success;
  const auto& p = *static_cast<preference*>(preferred);
  choice by{*static_cast<product*>(what),
            *static_cast<layout*>(a),
            *static_cast<layout*>(b),
            *static_cast<layout*>(d),
            {},
            static_cast<std::uint32_t>(p.workspace)};
  std::memcpy(by.alignment, p.alignment, sizeof by.alignment);
  state().offered = p.workspace;
  if (!fits(by.what, by.a, by.b, by.d)) return invalid_value;
  if (!equal(*static_cast<layout*>(c), by.d)) return fault("c is unlike d");
  results[0] = {};
  results[0].found.data[0] = choices().size();
  results[0].workspace = p.workspace;
  choices().push_back(by);
  return cublaslt::success;
}

int cublasLtMatmul(void* handle, void* what, const void* alpha, const void* a, void* layout_a,
                   const void* b, void* layout_b, const void* beta, const void* c, void* layout_c,
                   void* d, void* layout_d, const cublaslt::algorithm* by, void* workspace,
                   std::size_t bytes, void* stream) {
  static std::atomic<int> inside{0};
  struct visit {
    visit() { ++inside; }
    ~visit() { --inside; }
  } now;
  if (state().no_product) return state().no_product;
  if (handle != &state() || !by || by->data[0] >= choices().size())
    return fault("the algorithm is none of its own");
  const choice& found = choices()[by->data[0]];
  const auto& p = *static_cast<product*>(what);
  if (p.compute != found.what.compute || p.form[0] != found.what.form[0] ||
      p.form[1] != found.what.form[1] || !equal(*static_cast<layout*>(layout_a), found.a) ||
      !equal(*static_cast<layout*>(layout_b), found.b) ||
      !equal(*static_cast<layout*>(layout_c), found.d) ||
      !equal(*static_cast<layout*>(layout_d), found.d) || c != d)
    return fault("the algorithm is another product's");
  const void* const places[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (reinterpret_cast<std::uintptr_t>(places[i]) % found.alignment[i])
      return fault("a matrix is not aligned as was said");
  const bool wide = p.scale == cublaslt::real_64;
  if (wide ? *static_cast<const double*>(alpha) != 1 || *static_cast<const double*>(beta) != 0
           : *static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0)
    return fault("it is not the product alone");
  const std::uint64_t columns = found.d.columns * static_cast<std::uint64_t>(found.d.count);
  const std::size_t size = found.d.rows * columns * (wide ? 8 : 4);
  if (bytes < found.workspace || bytes < size || reinterpret_cast<std::uintptr_t>(workspace) % 256)
    return fault("the workspace is too small, or not aligned");
  ++state().products;
  state().compute = p.compute;
  // Two kernels, of which the second takes from the workspace what the first has left there.
  const auto on = static_cast<cudaStream_t>(stream);
  state().push(on, [=] {
    if (wide)
      multiply(found, static_cast<const double*>(a), static_cast<const double*>(b),
               static_cast<double*>(workspace));
    else
      multiply(found, static_cast<const float*>(a), static_cast<const float*>(b),
               static_cast<float*>(workspace));
  });
  std::this_thread::yield();
  if (inside != 1) fault("products share a workspace and are queued at the same time");
  state().push(on, [=] {
    const auto* from = static_cast<const char*>(workspace);
    const std::size_t column = found.d.rows * (wide ? 8 : 4);
    for (std::uint64_t j = 0; j < columns; ++j)
      std::memcpy(static_cast<char*>(d) + j * static_cast<std::size_t>(found.d.ld) * (wide ? 8 : 4),
                  from + j * column, column);
  });
  return cublaslt::success;
}

}  // extern "C"
