// SPDX-License-Identifier: Apache-2.0
// deft/core/shared_list.hpp: an immutable list that its copies share.
#pragma once
#include <algorithm>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <concepts>
#include <initializer_list>
#include <utility>
#include <vector>

namespace deft {

/// One pointer; an empty list owns nothing. Safe to copy from many threads.
template <class T>
class shared_list {
 public:
  using value_type = T;

  shared_list() = default;
  shared_list(std::vector<T> items) {  // NOLINT: implicit on purpose
    if (!items.empty()) list_ = new block(std::move(items));
  }
  shared_list(std::initializer_list<T> items) : shared_list(std::vector<T>(items)) {}

  std::size_t size() const { return list_ ? list_->items.size() : 0; }
  bool empty() const { return !list_; }
  const T* data() const { return list_ ? list_->items.data() : nullptr; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  const T& operator[](std::size_t i) const { return list_->items[i]; }
  /// Throws std::out_of_range.
  const T& at(std::size_t i) const {
    static const std::vector<T> nothing;
    return list_ ? list_->items.at(i) : nothing.at(i);
  }
  const T& front() const { return (*this)[0]; }
  const T& back() const { return (*this)[size() - 1]; }

  friend bool operator==(const shared_list& a,
                         const shared_list& b) requires std::equality_comparable<T> {
    return a.list_ == b.list_ || std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  struct block : boost::intrusive_ref_counter<block> {
    explicit block(std::vector<T> i) : items(std::move(i)) {}
    const std::vector<T> items;
  };
  boost::intrusive_ptr<const block> list_;
};

}  // namespace deft
