// SPDX-License-Identifier: Apache-2.0
// deft/data/stage.hpp: what a pipeline consists of: stages, and cursors that pass over them.
#pragma once
#include <cstdint>
#include <deft/core/config.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace deft {

/// What `cardinality()` says of a dataset that never ends.
inline constexpr std::int64_t infinite_cardinality = -1;
/// What `cardinality()` says of a dataset whose elements can only be counted by a pass, such as the
/// lines of a file.
inline constexpr std::int64_t unknown_cardinality = -2;

namespace detail {

/// One pass over a stage.
template <class E>
class cursor {
 public:
  virtual ~cursor() = default;
  /// Gets the next element, into the memory of the one that `element` holds where that is possible;
  /// false at the end, and from then on.
  virtual bool next(std::optional<E>& element) = 0;
  /// Begins the next pass, reusing the memory of this one.
  virtual void restart() = 0;
};

/// A source or an operation of a pipeline; several datasets may share it. Its cursors refer to it.
template <class E>
class stage {
 public:
  virtual ~stage() = default;
  virtual std::unique_ptr<cursor<E>> start() const = 0;
  /// The number of elements of a pass, or one of the two constants above.
  virtual std::int64_t cardinality() const = 0;
};
template <class E>
using stage_ref = std::shared_ptr<const stage<E>>;

/// A stage that other stages follow.
template <class From, class To = From>
class step_stage : public stage<To> {
 public:
  explicit step_stage(stage_ref<From> of) : of_(std::move(of)) {}
  std::int64_t cardinality() const override { return of_->cardinality(); }

 protected:
  stage_ref<From> of_;
};

/// An element within a pipeline of arrays in memory: the numbers of the rows that it consists of.
/// Only the last stage copies the rows.
using row_list = std::vector<std::int64_t>;

}  // namespace detail
}  // namespace deft
