// SPDX-License-Identifier: Apache-2.0
// deft/data/batch.hpp: the stages that combine elements, and those that copy rows of arrays.
#pragma once
#include <algorithm>
#include <cstddef>
#include <deft/core/ndarray.hpp>
#include <deft/data/stage.hpp>
#include <tuple>
#include <type_traits>

namespace deft::detail {

/// Throws invalid_argument unless n > 0.
void check_batch(std::int64_t n);
std::int64_t batched_cardinality(std::int64_t of, std::int64_t n, bool drop_remainder);

template <class T>
inline constexpr bool is_array = std::is_same_v<T, any_array>;
template <class T, std::int64_t... E>
inline constexpr bool is_array<ndarray<T, E...>> = true;

inline any_array take_array(any_array&& a) { return std::move(a); }
template <class T, std::int64_t... E>
any_array take_array(ndarray<T, E...>&& a) {
  return std::move(a).array();
}

/// Collects arrays of one dtype and shape as the rows of one that is larger by an axis.
class row_collector {
 public:
  /// Begins an array of at most `n` rows, in the memory of `reuse` if that is not shared.
  void begin(any_array reuse, std::int64_t n);
  /// Throws invalid_argument, with both shapes, if it is unlike the ones before.
  void add(dtype type, const dims& shape, const void* elements);
  any_array finish();

 private:
  void reserve(std::int64_t rows);

  buffer rows_;
  dims shape_;
  dtype type_ = dtype::none;
  std::size_t row_bytes_ = 0;
  std::int64_t count_ = 0, most_ = 0;
};

/// What becomes of a component that is batched: numbers and arrays become arrays, tuples become
/// tuples, everything else becomes a vector.
template <class T>
class batch_column {
 public:
  using batch = std::vector<T>;
  void begin(batch&& reuse, std::int64_t) {
    rows_ = std::move(reuse);
    rows_.clear();
  }
  void add(T& row) { rows_.push_back(std::move(row)); }
  batch finish() { return std::move(rows_); }

 private:
  batch rows_;
};
template <class T, class Batch>
class array_column {
 public:
  using batch = Batch;
  void begin(batch&& reuse, std::int64_t n) { rows_.begin(take_array(std::move(reuse)), n); }
  void add(T& row) {
    if constexpr (is_number_type<T>)
      rows_.add(dtype_of<T>, {}, &row);
    else if constexpr (std::is_same_v<T, any_array>)
      rows_.add(row.type(), row.shape(), row.raw());
    else
      rows_.add(dtype_of<typename T::value_type>, row.extents(), borrowed::from(row).raw());
  }
  batch finish() { return batch(rows_.finish()); }

 private:
  row_collector rows_;
};
template <plain_element T>
class batch_column<T> : public array_column<T, ndarray<T, dyn>> {};
template <>
class batch_column<any_array> : public array_column<any_array, any_array> {};
template <class T, std::int64_t... E>
class batch_column<ndarray<T, E...>>
    : public array_column<ndarray<T, E...>, ndarray<T, dyn, E...>> {};
template <class... Ts>
class batch_column<std::tuple<Ts...>> {
 public:
  using batch = std::tuple<typename batch_column<Ts>::batch...>;
  void begin(batch&& reuse, std::int64_t n) {
    each([&](auto& column, auto& of) { column.begin(std::move(of), n); }, reuse);
  }
  void add(std::tuple<Ts...>& row) {
    each([](auto& column, auto& of) { column.add(of); }, row);
  }
  batch finish() {
    return std::apply([](auto&... c) { return batch(c.finish()...); }, columns_);
  }

 private:
  template <class F, class Tuple>
  void each(F f, Tuple& of) {
    [&]<std::size_t... Nth>(std::index_sequence<Nth...>) {
      (f(std::get<Nth>(columns_), std::get<Nth>(of)), ...);
    }
    (std::index_sequence_for<Ts...>());
  }
  std::tuple<batch_column<Ts>...> columns_;
};

template <class E>
class batch_stage final : public step_stage<E, typename batch_column<E>::batch> {
 public:
  using batch = typename batch_column<E>::batch;
  batch_stage(stage_ref<E> of, std::int64_t n, bool drop_remainder)
      : step_stage<E, batch>(std::move(of)), n_(n), drop_(drop_remainder) {
    check_batch(n);
  }
  std::unique_ptr<cursor<batch>> start() const override {
    return std::make_unique<pass>(this->of_->start(), n_, drop_);
  }
  std::int64_t cardinality() const override {
    return batched_cardinality(this->of_->cardinality(), n_, drop_);
  }

 private:
  class pass final : public cursor<batch> {
   public:
    pass(std::unique_ptr<cursor<E>> of, std::int64_t n, bool drop)
        : of_(std::move(of)), n_(n), drop_(drop) {}
    bool next(std::optional<batch>& element) override {
      if (!of_->next(one_)) return false;
      if (!element) element.emplace();
      columns_.begin(std::move(*element), n_);
      std::int64_t count = 0;
      do {
        columns_.add(*one_);
      } while (++count < n_ && of_->next(one_));
      *element = columns_.finish();
      return count == n_ || !drop_;
    }
    void restart() override { of_->restart(); }

   private:
    std::unique_ptr<cursor<E>> of_;
    std::int64_t n_;
    bool drop_;
    std::optional<E> one_;
    batch_column<E> columns_;
  };
  std::int64_t n_;
  bool drop_;
};

/// Arrays in memory, and a pipeline of their rows' numbers.
struct row_pipeline {
  std::shared_ptr<const std::vector<any_array>> columns;
  stage_ref<row_list> rows;  ///< null: the elements come from elsewhere
  bool batched = false;      ///< an element has any number of rows, not one
};
/// All rows. Throws invalid_argument if the leading extents differ.
row_pipeline rows_of(std::vector<any_array> columns);
row_pipeline batch_rows(const row_pipeline& of, std::int64_t n, bool drop_remainder);

template <class Array>
struct slice_traits;
template <>
struct slice_traits<any_array> {
  using slice = any_array;
};
template <class T, std::int64_t N, std::int64_t... E>
struct slice_traits<ndarray<T, N, E...>> {
  using slice = ndarray<T, E...>;
};

/// Copies the given rows of `column`, into the memory of `reuse` if that is not shared and large
/// enough.
any_array gather_rows(const any_array& column, const row_list& rows, bool batched, any_array reuse);

/// The elements that a row_pipeline stands for.
template <class... Arrays>
class gather_stage final : public stage<std::tuple<Arrays...>> {
 public:
  using value_type = std::tuple<Arrays...>;
  explicit gather_stage(row_pipeline of) : of_(std::move(of)) {}
  std::unique_ptr<cursor<value_type>> start() const override { return std::make_unique<pass>(of_); }
  std::int64_t cardinality() const override { return of_.rows->cardinality(); }

 private:
  class pass final : public cursor<value_type> {
   public:
    explicit pass(const row_pipeline& of) : of_(of), rows_(of.rows->start()) {}
    bool next(std::optional<value_type>& element) override {
      if (!rows_->next(list_)) return false;
      if (!element) element.emplace();
      fill(*element, std::index_sequence_for<Arrays...>());
      return true;
    }
    void restart() override { rows_->restart(); }

   private:
    template <std::size_t... Index>
    void fill(value_type& e, std::index_sequence<Index...>) {
      ((std::get<Index>(e) = Arrays(gather_rows((*of_.columns)[Index], *list_, of_.batched,
                                                take_array(std::move(std::get<Index>(e)))))),
       ...);
    }
    const row_pipeline& of_;
    std::unique_ptr<cursor<row_list>> rows_;
    std::optional<row_list> list_;
  };
  row_pipeline of_;
};

}  // namespace deft::detail
