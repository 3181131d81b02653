// SPDX-License-Identifier: Apache-2.0
// deft/data/pipeline.ipp: the stages of a pipeline. They pass on lists of row numbers, and only the
// final elements are copied, once.
#pragma once
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deft/core/hash.hpp>
#include <deft/core/philox.hpp>
#include <deft/data/pipeline.hpp>

namespace deft::detail {

/// A stage whose cursor is `Cursor(the stage, a cursor of the stage before it)`.
template <class Self, class Cursor>
class step_stage : public row_stage {
 public:
  explicit step_stage(row_stage_ref of) : of_(std::move(of)) {}
  std::unique_ptr<row_cursor> start() const override {
    return std::make_unique<Cursor>(static_cast<const Self&>(*this), of_->start());
  }

 protected:
  row_stage_ref of_;
};

class row_source final : public row_stage {
 public:
  explicit row_source(std::int64_t n) : n_(n) {}
  std::unique_ptr<row_cursor> start() const override { return std::make_unique<cursor>(n_); }
  std::int64_t cardinality() const override { return n_; }

 private:
  class cursor final : public row_cursor {
   public:
    explicit cursor(std::int64_t n) : n_(n) {}
    bool next(row_list& element) override {
      if (at_ == n_) return false;
      element.assign(1, at_++);
      return true;
    }
    void restart() override { at_ = 0; }

   private:
    std::int64_t n_, at_ = 0;
  };
  std::int64_t n_;
};

class shuffled_rows;
class shuffle_cursor final : public row_cursor {
 public:
  shuffle_cursor(const shuffled_rows& stage, std::unique_ptr<row_cursor> of);
  bool next(row_list& element) override;
  void restart() override;

 private:
  const shuffled_rows& stage_;
  std::unique_ptr<row_cursor> of_;
  philox_stream random_;
  std::vector<row_list> buffer_;
  std::size_t filled_ = 0;
  bool ended_ = false;
};

class shuffled_rows final : public step_stage<shuffled_rows, shuffle_cursor> {
 public:
  shuffled_rows(row_stage_ref of, std::size_t size, std::uint64_t seed, bool reshuffle)
      : step_stage(std::move(of)), size_(size), seed_(seed), reshuffle_(reshuffle) {}
  std::int64_t cardinality() const override { return of_->cardinality(); }
  std::size_t size() const { return size_; }
  philox_stream random_of_next_pass() const {
    return philox_stream(seed_, reshuffle_ ? passes_.fetch_add(1) : 0);
  }

 private:
  std::size_t size_;
  std::uint64_t seed_;
  bool reshuffle_;
  mutable std::atomic<std::uint64_t> passes_{0};
};

inline shuffle_cursor::shuffle_cursor(const shuffled_rows& stage, std::unique_ptr<row_cursor> of)
    : stage_(stage), of_(std::move(of)), random_(stage.random_of_next_pass()) {}
inline bool shuffle_cursor::next(row_list& element) {
  while (filled_ < stage_.size() && !ended_) {
    if (filled_ == buffer_.size()) buffer_.emplace_back();
    if (of_->next(buffer_[filled_]))
      ++filled_;
    else
      ended_ = true;
  }
  if (!filled_) return false;
  auto drawn = static_cast<std::size_t>(random_.below(filled_));
  element.swap(buffer_[drawn]);
  buffer_[drawn].swap(buffer_[--filled_]);
  return true;
}
inline void shuffle_cursor::restart() {
  of_->restart();
  random_ = stage_.random_of_next_pass();
  filled_ = 0;
  ended_ = false;
}

class batch_cursor;
class batched_rows final : public step_stage<batched_rows, batch_cursor> {
 public:
  batched_rows(row_stage_ref of, std::int64_t rows, bool drop_rest)
      : step_stage(std::move(of)), n(rows), drop(drop_rest) {}
  std::int64_t cardinality() const override {
    std::int64_t c = of_->cardinality();
    return c < 0 ? c : c / n + (!drop && c % n != 0);
  }
  const std::int64_t n;
  const bool drop;
};
class batch_cursor final : public row_cursor {
 public:
  batch_cursor(const batched_rows& stage, std::unique_ptr<row_cursor> of)
      : stage_(stage), of_(std::move(of)) {}
  bool next(row_list& element) override {
    element.clear();
    while (static_cast<std::int64_t>(element.size()) < stage_.n && of_->next(one_))
      element.push_back(one_.front());
    bool whole = static_cast<std::int64_t>(element.size()) == stage_.n;
    return whole || (!element.empty() && !stage_.drop);
  }
  void restart() override { of_->restart(); }

 private:
  const batched_rows& stage_;
  std::unique_ptr<row_cursor> of_;
  row_list one_;
};

class repeat_cursor;
class repeated_rows final : public step_stage<repeated_rows, repeat_cursor> {
 public:
  repeated_rows(row_stage_ref of, std::int64_t times) : step_stage(std::move(of)), count(times) {}
  std::int64_t cardinality() const override {
    std::int64_t c = of_->cardinality();
    if (c == 0 || count == 0) return 0;
    return c < 0 || count < 0 ? -1 : c * count;
  }
  const std::int64_t count;
};
class repeat_cursor final : public row_cursor {
 public:
  repeat_cursor(const repeated_rows& stage, std::unique_ptr<row_cursor> of)
      : stage_(stage), of_(std::move(of)), ended_(stage.count == 0) {}
  bool next(row_list& element) override {
    if (ended_) return false;
    if (of_->next(element)) return some_ = true;
    // Repeating an empty pass would never end.
    ended_ = !some_ || ++done_ == stage_.count;
    if (ended_) return false;
    of_->restart();
    some_ = of_->next(element);
    ended_ = !some_;
    return some_;
  }
  void restart() override {
    of_->restart();
    done_ = 0;
    some_ = false;
    ended_ = stage_.count == 0;
  }

 private:
  const repeated_rows& stage_;
  std::unique_ptr<row_cursor> of_;
  std::int64_t done_ = 0;
  bool some_ = false, ended_;
};

/// shard, skip and take: the elements from `first` to before `end`, `step` apart.
class range_cursor;
class ranged_rows final : public step_stage<ranged_rows, range_cursor> {
 public:
  ranged_rows(row_stage_ref of, std::int64_t from, std::int64_t by, std::int64_t before)
      : step_stage(std::move(of)), first(from), step(by), end(before) {}
  std::int64_t cardinality() const override {
    std::int64_t c = of_->cardinality();
    if (c < 0 && end < 0) return -1;
    std::int64_t stop = c < 0 ? end : end < 0 ? c : std::min(c, end);
    return stop <= first ? 0 : (stop - first - 1) / step + 1;
  }
  const std::int64_t first, step, end;  // end -1: all
};
class range_cursor final : public row_cursor {
 public:
  range_cursor(const ranged_rows& stage, std::unique_ptr<row_cursor> of)
      : stage_(stage), of_(std::move(of)), wanted_(stage.first) {}
  bool next(row_list& element) override {
    if (stage_.end >= 0 && wanted_ >= stage_.end) return false;
    do {
      if (!of_->next(element)) return false;
    } while (at_++ != wanted_);
    wanted_ += stage_.step;
    return true;
  }
  void restart() override {
    of_->restart();
    at_ = 0;
    wanted_ = stage_.first;
  }

 private:
  const ranged_rows& stage_;
  std::unique_ptr<row_cursor> of_;
  std::int64_t at_ = 0, wanted_;
};

row_stage_ref source_stage(const std::vector<any_array>& columns) {
  std::int64_t n = columns.empty() ? 0 : columns[0].shape()[0];
  for (const any_array& c : columns)
    if (c.shape()[0] != n)
      fail(errc::invalid_argument, "[from_slices] leading extents differ: ",
           join(columns, ", ", [](const any_array& a) { return to_string(a.shape()); }));
  return std::make_shared<row_source>(n);
}

row_stage_ref shuffle_stage(row_stage_ref of, std::int64_t buffer_size,
                            std::optional<std::uint64_t> seed, bool reshuffle) {
  if (buffer_size < 1)
    fail(errc::invalid_argument, "[shuffle] expects a buffer_size of at least 1, got ",
         buffer_size);
  if (!seed) {
    seed = 0;
    if (getrandom(&*seed, sizeof *seed, 0) != sizeof *seed)
      fail(errc::unavailable, "[shuffle] the system has no random seed (getrandom)");
  }
  return std::make_shared<shuffled_rows>(std::move(of), static_cast<std::size_t>(buffer_size),
                                         *seed, reshuffle);
}

row_stage_ref batch_stage(row_stage_ref of, std::int64_t n, bool drop_remainder, bool batched) {
  if (n < 1) fail(errc::invalid_argument, "[batch] expects at least 1 element, got ", n);
  if (batched) fail(errc::unimplemented, "[batch] the dataset is batched already");
  return std::make_shared<batched_rows>(std::move(of), n, drop_remainder);
}

row_stage_ref repeat_stage(row_stage_ref of, std::int64_t count) {
  if (count < -1)
    fail(errc::invalid_argument, "[repeat] expects a count, or -1 for endless, got ", count);
  return std::make_shared<repeated_rows>(std::move(of), count);
}

row_stage_ref shard_stage(row_stage_ref of, std::int64_t num, std::int64_t index) {
  if (num < 1 || index < 0 || index >= num)
    fail(errc::invalid_argument, "[shard] expects an index in [0, num), got index ", index,
         " and num ", num);
  return std::make_shared<ranged_rows>(std::move(of), index, num, -1);
}

row_stage_ref take_stage(row_stage_ref of, std::int64_t n) {
  if (n < -1) fail(errc::invalid_argument, "[take] expects a count, or -1 for all, got ", n);
  return std::make_shared<ranged_rows>(std::move(of), 0, 1, n);
}

row_stage_ref skip_stage(row_stage_ref of, std::int64_t n) {
  if (n < -1) fail(errc::invalid_argument, "[skip] expects a count, or -1 for all, got ", n);
  if (n == -1) return std::make_shared<ranged_rows>(std::move(of), 0, 1, 0);
  return std::make_shared<ranged_rows>(std::move(of), n, 1, -1);
}

any_array gather_rows(const any_array& column, const row_list& rows, bool batched,
                      any_array reuse) {
  dims shape;
  if (batched) shape.push_back(static_cast<std::int64_t>(rows.size()));
  for (int i = 1; i < column.shape().rank(); ++i) shape.push_back(column.shape()[i]);
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

}  // namespace deft::detail
