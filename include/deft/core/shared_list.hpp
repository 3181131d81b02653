// SPDX-License-Identifier: Apache-2.0
// deft/core/shared_list.hpp: an immutable list that its copies share.
#pragma once
#include <algorithm>
#include <concepts>
#include <deft/core/shared_ref.hpp>
#include <initializer_list>
#include <utility>
#include <vector>

namespace deft::ext {

/// One pointer; an empty list owns nothing. Safe to copy from many threads.
template <class T>
class shared_list {
 public:
  using value_type = T;

  shared_list() = default;
  shared_list(std::vector<T> items) {  // NOLINT: implicit on purpose
    if (!items.empty()) list_ = shared_ref<std::vector<T>>::make(std::move(items));
  }
  shared_list(std::initializer_list<T> items) : shared_list(std::vector<T>(items)) {}

  std::size_t size() const { return list_ ? list_->size() : 0; }
  bool empty() const { return !list_; }
  const T* data() const { return list_ ? list_->data() : nullptr; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  const T& operator[](std::size_t i) const { return (*list_)[i]; }
  /// Throws std::out_of_range.
  const T& at(std::size_t i) const {
    static const std::vector<T> nothing;
    return list_ ? list_->at(i) : nothing.at(i);
  }

  friend bool operator==(const shared_list& a,
                         const shared_list& b) requires std::equality_comparable<T> {
    return a.list_ == b.list_ || std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  shared_ref<std::vector<T>> list_;
};

}  // namespace deft::ext
