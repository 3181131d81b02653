// SPDX-License-Identifier: Apache-2.0
// deft/core/any_array.ipp: construction, comparison and printing of host values.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/core/any_array.hpp>
#include <limits>
#include <vector>

namespace deft {

any_array::any_array(dtype type, const dims& shape) : shape_(shape), type_(type) {
  std::size_t bytes = size_of_dtype(type);
  for (auto e : shape) {
    if (e < 0) fail(errc::invalid_argument, "an array needs every extent, not ", shape);
    if (e && bytes > std::numeric_limits<std::size_t>::max() / static_cast<std::size_t>(e))
      fail(errc::resource_exhausted, "an array of ", shape, " is larger than memory");
    bytes *= static_cast<std::size_t>(e);
  }
  buffer_ = buffer::host(bytes);
}

any_array any_array::view(dtype type, const dims& shape, const void* data) {
  any_array a(type, shape, buffer());
  a.buffer_ = buffer::borrow(data, a.bytes());
  return a;
}

void any_array::own() { *this = clone(); }

any_array any_array::clone() const {
  if (!valid()) return {};
  any_array a(type_, shape_);
  if (bytes()) std::memcpy(a.mutable_raw(), raw(), bytes());
  return a;
}

bool operator==(const any_array& a, const any_array& b) {
  if (a.type() != b.type() || !(a.shape() == b.shape())) return false;
  if (!a.valid()) return true;
  return visit_dtype(a.type(), [&]<class T>() {
    return std::equal(a.data<T>(), a.data<T>() + a.elements(), b.data<T>());
  });
}

namespace {

/// NumPy's rule: more than 1,000 elements show the first and last three of each axis.
class array_printer {
 public:
  explicit array_printer(const any_array& a) : array_(a), shorten_(a.elements() > 1000) {
    const dims& d = a.shape();
    for (int i = d.rank() - 1, stride = 1; i >= 0; --i) {
      strides_[i] = stride;
      stride *= static_cast<int>(d[i]);
    }
    visit(0, 0, [&](std::int64_t at) {
      width_ = std::max(width_, text(at).size());
      return 0;
    });
  }

  std::string print() {
    print_axis(0, 0);
    return std::move(out_);
  }

 private:
  std::string text(std::int64_t at) const {
    return visit_dtype(array_.type(), [&]<class T>() {
      T v = array_.data<T>()[at];
      std::string s = str(v);
      if constexpr (std::is_floating_point_v<T>)
        if (s.find_first_of(".en") == s.npos) s += '.';
      return s;
    });
  }
  template <class F>
  void each(int axis, F f) {
    std::int64_t n = array_.shape()[axis];
    bool cut = shorten_ && n > 6;
    for (std::int64_t i = 0; i < n; ++i) {
      if (cut && i == 3) i = n - 3;
      f(i, cut && i == n - 3);
    }
  }
  template <class F>
  void visit(int axis, std::int64_t at, F f) {
    if (axis == array_.shape().rank()) {
      f(at);
      return;
    }
    each(axis, [&](std::int64_t i, bool) { visit(axis + 1, at + i * strides_[axis], f); });
  }
  void print_axis(int axis, std::int64_t at) {
    int rank = array_.shape().rank();
    if (axis == rank) {
      std::string s = text(at);
      if (rank > 0) out_.append(width_ - s.size(), ' ');
      out_ += s;
      return;
    }
    out_ += '[';
    bool last = axis == rank - 1;
    bool first = true;
    each(axis, [&](std::int64_t i, bool after_cut) {
      auto separate = [&] {
        if (!first) {
          if (last)
            out_ += ' ';
          else
            out_.append(static_cast<std::size_t>(rank - 1 - axis), '\n'),
                out_.append(static_cast<std::size_t>(axis + 1), ' ');
        }
        first = false;
      };
      if (after_cut) separate(), out_ += "...";
      separate();
      print_axis(axis + 1, at + i * strides_[axis]);
    });
    out_ += ']';
  }

  const any_array& array_;
  bool shorten_;
  std::int64_t strides_[max_rank + 1] = {};
  std::size_t width_ = 0;
  std::string out_;
};

}  // namespace

std::string to_string(const any_array& a) {
  if (!a.valid()) return "none";
  return array_printer(a).print();
}

}  // namespace deft
