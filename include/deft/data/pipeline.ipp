// SPDX-License-Identifier: Apache-2.0
// deft/data/pipeline.ipp: what the stages check and count, and the rows of arrays.
#pragma once
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <deft/data/pipeline.hpp>
#include <limits>

namespace deft::detail {

template class shuffle_stage<row_list>;
template class repeat_stage<row_list>;
template class range_stage<row_list>;

std::uint64_t shuffle_seed(std::int64_t buffer_size, std::optional<std::uint64_t> given) {
  if (buffer_size < 1)
    fail(errc::invalid_argument, "[shuffle] expects a buffer_size of at least 1, got ",
         buffer_size);
  if (given) return *given;
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
    fail(errc::unavailable, "[shuffle] the system has no random seed (getrandom)");
  return seed;
}

void check_count(std::string_view operation, std::int64_t count, std::string_view minus_one) {
  if (count < -1)
    fail(errc::invalid_argument, "[", operation, "] expects a count, or -1 for ", minus_one,
         ", got ", count);
}
void check_shard(std::int64_t num, std::int64_t index) {
  if (num < 1 || index < 0 || index >= num)
    fail(errc::invalid_argument, "[shard] expects an index in [0, num), got index ", index,
         " and num ", num);
}
void check_batch(std::int64_t n) {
  if (n < 1) fail(errc::invalid_argument, "[batch] expects at least 1 element, got ", n);
}
void check_interleave(std::int64_t cycle_length, std::int64_t block_length) {
  if (cycle_length < 1 || block_length < 1)
    fail(errc::invalid_argument,
         "[interleave] expects a cycle_length and a block_length of at least 1, got ", cycle_length,
         " and ", block_length);
}
void check_sizes(std::initializer_list<std::size_t> sizes) {
  for (std::size_t n : sizes)
    if (n != *sizes.begin())
      fail(errc::invalid_argument,
           "[from_slices] the sizes of the vectors differ: ", join(sizes, ", "));
}

std::int64_t repeated_cardinality(std::int64_t of, std::int64_t count) {
  if (of == 0 || count == 0) return 0;
  if (count < 0) return infinite_cardinality;
  if (of < 0) return of;
  std::int64_t all = 0;
  return __builtin_mul_overflow(of, count, &all) ? std::numeric_limits<std::int64_t>::max() : all;
}
std::int64_t ranged_cardinality(std::int64_t of, std::int64_t first, std::int64_t step,
                                std::int64_t end) {
  if (end == 0) return 0;
  if (of < 0 && (end < 0 || of == unknown_cardinality)) return of;
  const std::int64_t stop = of < 0 ? end : end < 0 ? of : std::min(of, end);
  return stop <= first ? 0 : (stop - first - 1) / step + 1;
}
std::int64_t batched_cardinality(std::int64_t of, std::int64_t n, bool drop_remainder) {
  return of < 0 ? of : of / n + (!drop_remainder && of % n != 0);
}
std::int64_t filtered_cardinality(std::int64_t of) { return of == 0 ? 0 : unknown_cardinality; }

namespace {

class all_rows final : public stage<row_list> {
 public:
  explicit all_rows(std::int64_t n) : n_(n) {}
  std::unique_ptr<cursor<row_list>> start() const override { return std::make_unique<pass>(n_); }
  std::int64_t cardinality() const override { return n_; }

 private:
  class pass final : public cursor<row_list> {
   public:
    explicit pass(std::int64_t n) : n_(n) {}
    bool next(std::optional<row_list>& rows) override {
      if (at_ == n_) return false;
      if (!rows) rows.emplace();
      rows->assign(1, at_++);
      return true;
    }
    void restart() override { at_ = 0; }

   private:
    std::int64_t n_, at_ = 0;
  };
  std::int64_t n_;
};

class batched_rows final : public step_stage<row_list> {
 public:
  batched_rows(stage_ref<row_list> of, std::int64_t n, bool drop)
      : step_stage(std::move(of)), n_(n), drop_(drop) {}
  std::unique_ptr<cursor<row_list>> start() const override {
    return std::make_unique<pass>(of_->start(), n_, drop_);
  }
  std::int64_t cardinality() const override {
    return batched_cardinality(of_->cardinality(), n_, drop_);
  }

 private:
  class pass final : public cursor<row_list> {
   public:
    pass(std::unique_ptr<cursor<row_list>> of, std::int64_t n, bool drop)
        : of_(std::move(of)), n_(n), drop_(drop) {}
    bool next(std::optional<row_list>& rows) override {
      if (!rows) rows.emplace();
      rows->clear();
      while (static_cast<std::int64_t>(rows->size()) < n_ && of_->next(one_))
        rows->push_back(one_->front());
      const bool whole = static_cast<std::int64_t>(rows->size()) == n_;
      return whole || (!rows->empty() && !drop_);
    }
    void restart() override { of_->restart(); }

   private:
    std::unique_ptr<cursor<row_list>> of_;
    std::int64_t n_;
    bool drop_;
    std::optional<row_list> one_;
  };
  std::int64_t n_;
  bool drop_;
};

}  // namespace

row_pipeline rows_of(std::vector<any_array> columns) {
  for (const any_array& c : columns)
    if (c.shape().empty()) fail(errc::invalid_argument, "[from_slices] a scalar has no rows");
  const std::int64_t n = columns.empty() ? 0 : columns[0].shape()[0];
  for (const any_array& c : columns)
    if (c.shape()[0] != n)
      fail(errc::invalid_argument, "[from_slices] leading extents differ: ",
           join(columns, ", ", [](const any_array& a) { return to_string(a.shape()); }));
  return {std::make_shared<const std::vector<any_array>>(std::move(columns)),
          std::make_shared<all_rows>(n), false};
}
row_pipeline batch_rows(const row_pipeline& of, std::int64_t n, bool drop_remainder) {
  check_batch(n);
  return {of.columns, std::make_shared<batched_rows>(of.rows, n, drop_remainder), true};
}

any_array gather_rows(const any_array& column, const row_list& rows, bool batched,
                      any_array reuse) {
  dims shape;
  if (batched) shape.push_back(static_cast<std::int64_t>(rows.size()));
  std::int64_t of_row = 1;
  for (int i = 1; i < column.shape().rank(); ++i) {
    shape.push_back(column.shape()[i]);
    of_row *= column.shape()[i];
  }
  if (column.type() == dtype::string) {
    const string_span all = column.strings();
    std::vector<std::string_view> texts;
    for (const std::int64_t row : rows)
      texts.insert(texts.end(), all.begin() + row * of_row, all.begin() + (row + 1) * of_row);
    return {shape, texts};
  }
  std::size_t row_bytes = size_of_dtype(column.type());
  for (int i = 1; i < column.shape().rank(); ++i)
    row_bytes *= static_cast<std::size_t>(column.shape()[i]);

  any_array out;
  if (reuse.storage().unique() && reuse.storage().capacity() >= row_bytes * rows.size())
    out = any_array(column.type(), shape, std::move(reuse).take_storage());
  else
    out = any_array(column.type(), shape);
  auto* to = static_cast<char*>(out.mutable_raw());
  const auto* from = static_cast<const char*>(column.raw());
  for (std::int64_t row : rows) {
    if (row_bytes) std::memcpy(to, from + static_cast<std::size_t>(row) * row_bytes, row_bytes);
    to += row_bytes;
  }
  return out;
}

void row_collector::begin(any_array reuse, std::int64_t n) {
  rows_ = std::move(reuse).take_storage();
  type_ = dtype::none;
  count_ = 0;
  most_ = n;
}
void row_collector::add(dtype type, const dims& shape, const void* elements) {
  if (!plain_dtypes.has(type))
    fail(errc::unimplemented, "[batch] cannot collect elements of ", type,
         ": batch them as columns of from_slices");
  if (count_ == 0) {
    if (!rows_.unique()) rows_.reset();
    type_ = type;
    shape_ = shape;
    row_bytes_ = size_of_dtype(type) * static_cast<std::size_t>(shape.elements());
  } else if (type != type_ || shape != shape_) {
    fail(errc::invalid_argument, "[batch] expects elements of one dtype and shape, got ", type_,
         shape_, " and ", type, shape);
  }
  if (rows_.capacity() < row_bytes_ * static_cast<std::size_t>(count_ + 1) || !rows_)
    reserve(std::min(most_, std::max<std::int64_t>(2 * count_, 64)));
  if (row_bytes_)
    std::memcpy(static_cast<char*>(rows_.data()) + row_bytes_ * static_cast<std::size_t>(count_),
                elements, row_bytes_);
  ++count_;
}
void row_collector::reserve(std::int64_t rows) {
  buffer larger = buffer::host(row_bytes_ * static_cast<std::size_t>(rows));
  if (count_)
    std::memcpy(larger.data(), rows_.data(), row_bytes_ * static_cast<std::size_t>(count_));
  rows_ = std::move(larger);
}
any_array row_collector::finish() {
  dims shape{count_};
  for (auto e : shape_) shape.push_back(e);
  return any_array(type_, shape, std::move(rows_));
}

}  // namespace deft::detail
