// SPDX-License-Identifier: Apache-2.0
// deft/data/pipeline.hpp: datasets, with the operations of tf.data.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deft/core/ndarray.hpp>
#include <deft/data/background.hpp>
#include <deft/data/batch.hpp>
#include <deft/data/select.hpp>
#include <deft/data/stage.hpp>
#include <deft/data/transform.hpp>
#include <iterator>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace deft {

template <class... Ts>
class dataset;

namespace detail {
template <class E>
struct dataset_of;
template <class... Ts>
struct dataset_of<std::tuple<Ts...>> {
  using type = dataset<Ts...>;
};
template <class T>
inline constexpr bool is_dataset = false;
template <class... Ts>
inline constexpr bool is_dataset<dataset<Ts...>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
}  // namespace detail

/// Options of dataset::map.
struct map_options {
  int threads = 0;  ///< that call the function; 0: the thread that makes the pass calls it
};

/// A sequence of elements. An element is a tuple of components, which may be of any type that can
/// be moved: `dataset<ndarray<float, 784>, ndarray<std::int32_t>>` holds images with labels, and
/// `batch` makes it `dataset<ndarray<float, dyn, 784>, ndarray<std::int32_t, dyn>>`;
/// `dataset<std::string>` holds lines of text. It is a value that is cheap to copy; every operation
/// returns a new one and leaves the old one unchanged. Nothing is read or computed before a pass.
///
///     for (auto& [images, labels] : from_slices(x, y).shuffle(10'000, seed).batch(100).repeat(3))
///     for (auto& [line] : text_lines("words.txt").take(10))
///
/// An element is valid until the next one, which is written into the same memory unless a copy of
/// it still exists. There may be any number of passes at a time, each on one thread. A pass throws
/// what its source and the functions in it throw, where the element would have come, and has ended
/// then.
///
/// Functions take the components as arguments. Each pass, and each thread of it, calls a copy of
/// its own, so that they may keep buffers.
template <class... Ts>
class dataset {
  static_assert((std::is_object_v<Ts> && ...), "[dataset] components are objects, not references");

 public:
  /// An element.
  using value_type = std::tuple<Ts...>;

  /// A single pass, an input iterator. It can be moved, not copied.
  class iterator {
   public:
    /// @cond what input iterators have
    using iterator_concept = std::input_iterator_tag;
    using value_type = dataset::value_type;
    using difference_type = std::ptrdiff_t;

    value_type& operator*() const { return *pass_->element; }
    value_type* operator->() const { return &*pass_->element; }
    iterator& operator++() {
      pass_->advance();
      return *this;
    }
    void operator++(int) { pass_->advance(); }
    friend bool operator==(const iterator& i, std::default_sentinel_t) { return i.pass_->ended; }
    /// @endcond

   private:
    friend class dataset;
    struct pass {
      detail::stage_ref<value_type> of;
      std::unique_ptr<detail::cursor<value_type>> cursor;
      std::optional<value_type> element;
      bool ended = false;

      void advance() {
        if (std::exchange(ended, true)) return;
        ended = !cursor->next(element);
      }
    };
    explicit iterator(const dataset& d) : pass_(new pass{d.stage_, d.stage_->start(), {}, false}) {
      pass_->advance();
    }
    std::unique_ptr<pass> pass_;
  };

  /// A source of its own: see data/stage.hpp.
  explicit dataset(detail::stage_ref<value_type> stage) : stage_(std::move(stage)) {}

  /// Begins a pass, and gets its first element. Throws what the source and the functions throw.
  iterator begin() const { return iterator(*this); }
  /// The end of every pass.
  std::default_sentinel_t end() const { return {}; }

  /// The number of elements of a pass, or the largest std::int64_t if there are more; -1
  /// (infinite_cardinality) if it is endless, -2 (unknown_cardinality) if only a pass can tell.
  std::int64_t cardinality() const { return stage_->cardinality(); }

  /// What f returns for each element. If that is a tuple, its components are those of the new
  /// elements. f may change its arguments and move from them. With threads, the order stays the
  /// same, and elements are computed ahead: up to 16 for each thread.
  ///
  ///     records(files).map([](std::string& bytes) { return decoded(bytes); }, {.threads = 4})
  ///
  /// Throws invalid_argument if the number of threads is below 0 or above 1,024.
  template <class F>
  auto map(F f, const map_options& options = {}) const {
    if constexpr (!std::is_invocable_v<F&, Ts&...>) {
      static_assert(std::is_invocable_v<F&, Ts&...>,
                    "[map] expects a function that takes the components of an element");
    } else if constexpr (std::is_void_v<std::invoke_result_t<F&, Ts&...>>) {
      static_assert(!std::is_void_v<std::invoke_result_t<F&, Ts&...>>,
                    "[map] expects a function that returns a value");
    } else {
      using result = std::remove_cvref_t<std::invoke_result_t<F&, Ts&...>>;
      using to = typename detail::element_of<result>::type;
      using mapping = detail::mapping<F, to>;
      using next = typename detail::dataset_of<to>::type;
      if (options.threads == 0)
        return next(std::make_shared<detail::map_stage<value_type, to, mapping>>(
            stage_, mapping(std::move(f))));
      return next(std::make_shared<detail::parallel_map_stage<value_type, to, mapping>>(
          stage_, mapping(std::move(f)), options.threads));
    }
  }
  /// The elements for which `wanted` returns true.
  template <class Predicate>
  dataset filter(Predicate wanted) const {
    if constexpr (std::is_invocable_r_v<bool, Predicate&, const Ts&...>) {
      return dataset(
          std::make_shared<detail::filter_stage<value_type, Predicate>>(stage_, std::move(wanted)));
    } else {
      static_assert(std::is_invocable_r_v<bool, Predicate&, const Ts&...>,
                    "[filter] expects a function that takes the components of an element, as "
                    "constants, and returns a bool");
      return *this;
    }
  }
  /// The elements of the datasets that f returns, one for each element of this one. `cycle_length`
  /// of them are open at a time, and `block_length` elements of each are taken in turn; the next
  /// dataset takes the turn of one that has ended. With a cycle_length of 1 they follow each other.
  ///
  ///     from_slices(files).interleave([](const std::string& f) { return text_lines(f); }, 4)
  ///
  /// Throws invalid_argument if one of the lengths is below 1.
  template <class F>
  auto interleave(F f, std::int64_t cycle_length, std::int64_t block_length = 1) const {
    if constexpr (!std::is_invocable_v<F&, Ts&...>) {
      static_assert(std::is_invocable_v<F&, Ts&...>,
                    "[interleave] expects a function that takes the components of an element");
    } else {
      using next = std::remove_cvref_t<std::invoke_result_t<F&, Ts&...>>;
      if constexpr (!detail::is_dataset<next>) {
        static_assert(detail::is_dataset<next>,
                      "[interleave] expects a function that returns a dataset");
      } else {
        using to = typename next::value_type;
        auto open = [f = std::move(f)](Ts&... components) mutable {
          return next(f(components...)).stage_;
        };
        return next(std::make_shared<detail::interleave_stage<value_type, to, decltype(open)>>(
            stage_, std::move(open), cycle_length, block_length));
      }
    }
  }
  /// Shuffles the elements: each one is drawn at random from a buffer of `buffer_size` elements,
  /// which is refilled from the rest; a buffer as large as the dataset shuffles it perfectly. The
  /// seed determines the order of every pass; without one it differs from run to run. Each pass,
  /// and each repetition, has a different order unless `reshuffle_each_iteration` is false. Throws
  /// invalid_argument if `buffer_size` is below 1.
  dataset shuffle(std::int64_t buffer_size, std::optional<std::uint64_t> seed = {},
                  bool reshuffle_each_iteration = true) const {
    return followed_by<detail::shuffle_stage>(buffer_size, seed, reshuffle_each_iteration);
  }
  /// Combines `n` elements into one. Arrays and numbers become arrays with a leading extent of `n`,
  /// tuples become tuples of what their components become, and values of other types become a
  /// vector. The last batch may be smaller, or is left out with `drop_remainder`. Throws
  /// invalid_argument if `n` is below 1; a pass throws it if the shapes or dtypes of arrays that
  /// are to be combined differ.
  auto batch(std::int64_t n, bool drop_remainder = false) const {
    using next = dataset<typename detail::batch_column<Ts>::batch...>;
    if constexpr (of_arrays)
      if (rows_.rows && !rows_.batched) return next(detail::batch_rows(rows_, n, drop_remainder));
    return next(std::make_shared<detail::batch_stage<value_type>>(stage_, n, drop_remainder));
  }
  /// Repeats the dataset `count` times; -1: endlessly. Throws invalid_argument if `count` is below
  /// -1.
  dataset repeat(std::int64_t count = -1) const { return followed_by<detail::repeat_stage>(count); }
  /// Every `num`-th element, starting at `index`: the part of one of `num` workers. Throws
  /// invalid_argument unless 0 <= index < num.
  dataset shard(std::int64_t num, std::int64_t index) const {
    detail::check_shard(num, index);
    return followed_by<detail::range_stage>(index, num, -1);
  }
  /// The first `n` elements; -1: all. Throws invalid_argument if `n` is below -1.
  dataset take(std::int64_t n) const {
    detail::check_count("take", n, "all");
    return followed_by<detail::range_stage>(0, 1, n);
  }
  /// All but the first `n` elements; -1: none. Throws invalid_argument if `n` is below -1.
  dataset skip(std::int64_t n) const {
    detail::check_count("skip", n, "all");
    return followed_by<detail::range_stage>(n == -1 ? 0 : n, 1, n == -1 ? 0 : -1);
  }
  /// Makes up to `n` elements ahead, on a thread of its own that each pass starts: they are made
  /// while the caller uses the ones before. The end of the pass joins the thread, after the element
  /// that it is making. Throws invalid_argument if `n` is below 1.
  dataset prefetch(std::int64_t n) const {
    return dataset(std::make_shared<detail::prefetch_stage<value_type>>(stage_, n));
  }

 private:
  template <class...>
  friend class dataset;
  template <class... Columns>
  friend auto from_slices(Columns... columns);

  static constexpr bool of_arrays = (detail::is_array<Ts> && ...);

  explicit dataset(detail::row_pipeline rows)
      : stage_(std::make_shared<detail::gather_stage<Ts...>>(rows)), rows_(std::move(rows)) {}

  /// While there are only rows of arrays, their numbers go through the pipeline.
  template <template <class> class Stage, class... Arguments>
  dataset followed_by(Arguments... arguments) const {
    if constexpr (of_arrays)
      if (rows_.rows) {
        auto rows = std::make_shared<Stage<detail::row_list>>(rows_.rows, arguments...);
        return dataset(detail::row_pipeline{rows_.columns, std::move(rows), rows_.batched});
      }
    return dataset(std::make_shared<Stage<value_type>>(stage_, arguments...));
  }

  detail::stage_ref<value_type> stage_;
  detail::row_pipeline rows_;
};

/// A dataset of the rows of arrays in memory: element i is (a(i), b(i), …). Arrays are copied, or
/// moved in.
///
///     from_slices(read_npy("x.npy"), read_npy("y.npy"))
///
/// Throws invalid_argument if their leading extents differ.
template <class... Columns>
auto from_slices(Columns... columns) {
  if constexpr (!(detail::is_array<Columns> && ...)) {
    static_assert((detail::is_array<Columns> && ...),
                  "[from_slices] expects arrays, or vectors; no mixture of them");
  } else {
    std::vector<any_array> held;
    (held.push_back(detail::take_array(std::move(columns))), ...);
    return dataset<typename detail::slice_traits<Columns>::slice...>(
        detail::rows_of(std::move(held)));
  }
}

/// A dataset of the elements of vectors: element i is (a[i], b[i], …).
/// Throws invalid_argument if their sizes differ.
template <class... Ts>
dataset<Ts...> from_slices(std::vector<Ts>... columns) {
  static_assert(sizeof...(Ts) > 0, "[from_slices] expects at least one vector");
  detail::check_sizes({columns.size()...});
  return dataset<Ts...>(std::make_shared<detail::vector_stage<Ts...>>(std::move(columns)...));
}

/// A dataset of what a function without arguments returns: optional elements, of which the empty
/// one ends the pass. An optional tuple is an element, an optional of another type its only
/// component. Each pass calls a copy of the function, in the state in which it is given.
///
///     from_generator([i = 0]() mutable { return i < 3 ? std::optional(i++) : std::nullopt; })
template <class Generator>
auto from_generator(Generator g) {
  if constexpr (!std::is_invocable_v<Generator&>) {
    static_assert(std::is_invocable_v<Generator&>,
                  "[from_generator] expects a function without arguments");
  } else {
    using made = std::remove_cvref_t<std::invoke_result_t<Generator&>>;
    if constexpr (!detail::is_optional<made>) {
      static_assert(detail::is_optional<made>,
                    "[from_generator] expects a function that returns an std::optional");
    } else {
      using to = typename detail::element_of<typename made::value_type>::type;
      return typename detail::dataset_of<to>::type(
          std::make_shared<detail::generator_stage<to, Generator>>(std::move(g)));
    }
  }
}

}  // namespace deft
