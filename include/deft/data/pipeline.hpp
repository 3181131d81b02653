// SPDX-License-Identifier: Apache-2.0
// deft/data/pipeline.hpp: datasets in memory, with the operations of tf.data.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deft/core/ndarray.hpp>
#include <iterator>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace deft {
namespace detail {

/// An element within the pipeline: the numbers of the source's rows that it consists of.
using row_list = std::vector<std::int64_t>;

/// One pass over a stage.
class row_cursor {
 public:
  virtual ~row_cursor() = default;
  /// Gets the next element; false at the end, and from then on.
  virtual bool next(row_list& element) = 0;
  /// Begins the next pass, reusing the memory of this one.
  virtual void restart() = 0;
};

/// A step of a pipeline; several datasets may share it.
class row_stage {
 public:
  virtual ~row_stage() = default;
  virtual std::unique_ptr<row_cursor> start() const = 0;
  /// The number of elements of a pass; -1 if it is endless.
  virtual std::int64_t cardinality() const = 0;
};
using row_stage_ref = std::shared_ptr<const row_stage>;

row_stage_ref source_stage(const std::vector<any_array>& columns);
row_stage_ref shuffle_stage(row_stage_ref of, std::int64_t buffer_size,
                            std::optional<std::uint64_t> seed, bool reshuffle);
row_stage_ref batch_stage(row_stage_ref of, std::int64_t n, bool drop_remainder, bool batched);
row_stage_ref repeat_stage(row_stage_ref of, std::int64_t count);
row_stage_ref shard_stage(row_stage_ref of, std::int64_t num, std::int64_t index);
row_stage_ref take_stage(row_stage_ref of, std::int64_t n);
row_stage_ref skip_stage(row_stage_ref of, std::int64_t n);

/// Copies the given rows of `column`, into the memory of `reuse` if that is not shared and large
/// enough.
any_array gather_rows(const any_array& column, const row_list& rows, bool batched, any_array reuse);

template <class Array>
struct slice_traits;
template <class T, std::int64_t N, std::int64_t... E>
struct slice_traits<ndarray<T, N, E...>> {
  using slice = ndarray<T, E...>;
};
template <class Array>
struct batch_traits;
template <class T, std::int64_t... E>
struct batch_traits<ndarray<T, E...>> {
  using batch = ndarray<T, dyn, E...>;
};

}  // namespace detail

/// A sequence of elements, each a tuple of arrays: `dataset<ndarray<float, 784>,
/// ndarray<std::int32_t>>` holds images with labels, and `batch` makes it
/// `dataset<ndarray<float, dyn, 784>, ndarray<std::int32_t, dyn>>`. It is a value that is cheap to
/// copy; every operation returns a new one and leaves the old one unchanged.
///
///     for (auto& [images, labels] : from_slices(x, y).shuffle(10'000, seed).batch(100).repeat(3))
///
/// An element is valid until the next one, which is written into the same memory unless a copy of
/// it still exists. There may be any number of passes at a time, each on one thread.
template <class... Arrays>
class dataset {
 public:
  using value_type = std::tuple<Arrays...>;

  /// A single pass.
  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = dataset::value_type;
    using difference_type = std::ptrdiff_t;

    value_type& operator*() const { return pass_->element; }
    value_type* operator->() const { return &pass_->element; }
    iterator& operator++() {
      pass_->advance();
      return *this;
    }
    void operator++(int) { pass_->advance(); }
    friend bool operator==(const iterator& i, std::default_sentinel_t) { return i.pass_->ended; }

   private:
    friend class dataset;
    struct pass {
      dataset of;
      std::unique_ptr<detail::row_cursor> rows;
      detail::row_list row_list;
      value_type element;
      bool ended = false;

      void advance() {
        ended = !rows->next(row_list);
        if (!ended) fill(std::index_sequence_for<Arrays...>());
      }
      template <std::size_t... Index>
      void fill(std::index_sequence<Index...>) {
        ((std::get<Index>(element) =
              Arrays(detail::gather_rows((*of.columns_)[Index], row_list, of.batched_,
                                         std::move(std::get<Index>(element)).array()))),
         ...);
      }
    };
    explicit iterator(const dataset& d) : pass_(new pass{d, d.stage_->start(), {}, {}, false}) {
      pass_->advance();
    }
    std::unique_ptr<pass> pass_;
  };

  /// Begins a pass.
  iterator begin() const { return iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

  /// The number of elements of a pass; -1 if it is endless.
  std::int64_t cardinality() const { return stage_->cardinality(); }

  /// Shuffles the elements: each one is drawn at random from a buffer of `buffer_size` elements,
  /// which is refilled from the rest; a buffer as large as the dataset shuffles it perfectly. The
  /// seed determines the order of every pass; without one it differs from run to run. Each pass,
  /// and each repetition, has a different order unless `reshuffle_each_iteration` is false. Throws
  /// invalid_argument if `buffer_size` is below 1.
  dataset shuffle(std::int64_t buffer_size, std::optional<std::uint64_t> seed = {},
                  bool reshuffle_each_iteration = true) const {
    return with(detail::shuffle_stage(stage_, buffer_size, seed, reshuffle_each_iteration));
  }
  /// Combines `n` elements into one, with a leading extent of `n`. The last batch may be smaller,
  /// or is left out with `drop_remainder`. Throws invalid_argument if `n` is below 1, unimplemented
  /// if the dataset is batched already.
  auto batch(std::int64_t n, bool drop_remainder = false) const {
    return dataset<typename detail::batch_traits<Arrays>::batch...>(
        columns_, detail::batch_stage(stage_, n, drop_remainder, batched_), true);
  }
  /// Repeats the dataset `count` times; -1: endlessly. Throws invalid_argument if `count` is below
  /// -1.
  dataset repeat(std::int64_t count = -1) const {
    return with(detail::repeat_stage(stage_, count));
  }
  /// Every `num`-th element, starting at `index`: the part of one of `num` workers. Throws
  /// invalid_argument unless 0 <= index < num.
  dataset shard(std::int64_t num, std::int64_t index) const {
    return with(detail::shard_stage(stage_, num, index));
  }
  /// The first `n` elements; -1: all. Throws invalid_argument if `n` is below -1.
  dataset take(std::int64_t n) const { return with(detail::take_stage(stage_, n)); }
  /// All but the first `n` elements; -1: none. Throws invalid_argument if `n` is below -1.
  dataset skip(std::int64_t n) const { return with(detail::skip_stage(stage_, n)); }

 private:
  template <class...>
  friend class dataset;
  template <class... Columns>
  friend auto from_slices(Columns... columns);
  using columns_ref = std::shared_ptr<const std::vector<any_array>>;

  dataset(columns_ref columns, detail::row_stage_ref stage, bool batched)
      : columns_(std::move(columns)), stage_(std::move(stage)), batched_(batched) {}
  dataset with(detail::row_stage_ref stage) const { return {columns_, std::move(stage), batched_}; }

  columns_ref columns_;
  detail::row_stage_ref stage_;
  bool batched_ = false;
};

/// A dataset of the rows of arrays in memory: element i is (a(i), b(i), …). Arrays are copied, or
/// moved in.
/// Throws invalid_argument if their leading extents differ.
template <class... Columns>
auto from_slices(Columns... columns) {
  auto held = std::make_shared<std::vector<any_array>>();
  (held->push_back(std::move(columns).array()), ...);
  auto stage = detail::source_stage(*held);
  return dataset<typename detail::slice_traits<Columns>::slice...>(std::move(held),
                                                                   std::move(stage), false);
}

}  // namespace deft
