// SPDX-License-Identifier: Apache-2.0
// deft/data/pipeline.hpp: datasets in memory and what is done to them, in the words of tf.data.
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

/// One element on its way through the pipeline: the rows of the source that it is made of.
using row_list = std::vector<std::int64_t>;

/// One pass over a stage.
class row_cursor {
 public:
  virtual ~row_cursor() = default;
  /// The next element; false at the end, and from then on.
  virtual bool next(row_list& element) = 0;
  /// Begins the next pass, with the memory of this one.
  virtual void restart() = 0;
};

/// A step of a pipeline; several datasets may share it.
class row_stage {
 public:
  virtual ~row_stage() = default;
  virtual std::unique_ptr<row_cursor> start() const = 0;
  /// How many elements a pass has; -1: without end.
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

/// The named rows of `column`, in the memory of `reuse` where nobody else holds it.
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
/// `dataset<ndarray<float, dyn, 784>, ndarray<std::int32_t, dyn>>`. A value that is cheap to copy;
/// every step gives a new one and leaves the old as it was.
///
///     for (auto& [images, labels] : from_slices(x, y).shuffle(10'000, seed).batch(100).repeat(3))
///
/// What iterating yields is good until the next element, which is written into the same memory
/// unless someone still shares it. Begin as many passes as you like; one pass is for one thread.
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

  /// How many elements a pass has; -1 if it has no end.
  std::int64_t cardinality() const { return stage_->cardinality(); }

  /// In random order: each next one is drawn from a buffer of `buffer_size` elements, which is
  /// filled up again from what follows; a buffer as large as the dataset shuffles it perfectly. A
  /// seed decides the order of every pass; without one it differs from run to run. Each pass, and
  /// each repetition, has an order of its own unless `reshuffle_each_iteration` is false.
  dataset shuffle(std::int64_t buffer_size, std::optional<std::uint64_t> seed = {},
                  bool reshuffle_each_iteration = true) const {
    return with(detail::shuffle_stage(stage_, buffer_size, seed, reshuffle_each_iteration));
  }
  /// `n` elements become one, with their number as leading extent. The last one may have fewer,
  /// unless `drop_remainder`. A dataset is batched once.
  auto batch(std::int64_t n, bool drop_remainder = false) const {
    return dataset<typename detail::batch_traits<Arrays>::batch...>(
        columns_, detail::batch_stage(stage_, n, drop_remainder, batched_), true);
  }
  /// `count` times all over; -1: without end.
  dataset repeat(std::int64_t count = -1) const {
    return with(detail::repeat_stage(stage_, count));
  }
  /// Every `num`-th element, from the one at `index` on: one worker's part.
  dataset shard(std::int64_t num, std::int64_t index) const {
    return with(detail::shard_stage(stage_, num, index));
  }
  /// The first `n` elements; -1: all.
  dataset take(std::int64_t n) const { return with(detail::take_stage(stage_, n)); }
  /// All but the first `n` elements; -1: none.
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

/// The rows of arrays in memory, one element each: element i is (a(i), b(i), …). Arrays are copied,
/// or moved in.
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
