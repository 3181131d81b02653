// SPDX-License-Identifier: Apache-2.0
// deft/data/select.hpp: the stages that choose among elements and change their order.
#pragma once
#include <atomic>
#include <cstddef>
#include <deft/core/philox.hpp>
#include <deft/data/stage.hpp>
#include <string_view>

namespace deft::detail {

/// The seed that is given, or one of the system. Throws invalid_argument if `buffer_size` is below
/// 1.
std::uint64_t shuffle_seed(std::int64_t buffer_size, std::optional<std::uint64_t> given);
/// Throw invalid_argument.
void check_count(std::string_view operation, std::int64_t count, std::string_view minus_one);
void check_shard(std::int64_t num, std::int64_t index);
std::int64_t repeated_cardinality(std::int64_t of, std::int64_t count);
std::int64_t ranged_cardinality(std::int64_t of, std::int64_t first, std::int64_t step,
                                std::int64_t end);

template <class E>
class shuffle_stage final : public step_stage<E> {
 public:
  shuffle_stage(stage_ref<E> of, std::int64_t size, std::optional<std::uint64_t> seed,
                bool reshuffle)
      : step_stage<E>(std::move(of)),
        seed_(shuffle_seed(size, seed)),
        size_(static_cast<std::size_t>(size)),
        reshuffle_(reshuffle) {}
  std::unique_ptr<cursor<E>> start() const override {
    return std::make_unique<pass>(*this, this->of_->start());
  }

 private:
  class pass final : public cursor<E> {
   public:
    pass(const shuffle_stage& s, std::unique_ptr<cursor<E>> of)
        : stage_(s), of_(std::move(of)), random_(s.random_of_next_pass()) {}
    bool next(std::optional<E>& element) override {
      while (filled_ < stage_.size_ && !ended_) {
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
    void restart() override {
      of_->restart();
      random_ = stage_.random_of_next_pass();
      filled_ = 0;
      ended_ = false;
    }

   private:
    const shuffle_stage& stage_;
    std::unique_ptr<cursor<E>> of_;
    philox_stream random_;
    std::vector<std::optional<E>> buffer_;
    std::size_t filled_ = 0;
    bool ended_ = false;
  };
  philox_stream random_of_next_pass() const {
    return philox_stream(seed_, reshuffle_ ? passes_.fetch_add(1) : 0);
  }

  std::uint64_t seed_;
  std::size_t size_;
  bool reshuffle_;
  mutable std::atomic<std::uint64_t> passes_{0};
};

template <class E>
class repeat_stage final : public step_stage<E> {
 public:
  repeat_stage(stage_ref<E> of, std::int64_t count) : step_stage<E>(std::move(of)), count_(count) {
    check_count("repeat", count, "endless");
  }
  std::unique_ptr<cursor<E>> start() const override {
    return std::make_unique<pass>(this->of_->start(), count_);
  }
  std::int64_t cardinality() const override {
    return repeated_cardinality(this->of_->cardinality(), count_);
  }

 private:
  class pass final : public cursor<E> {
   public:
    pass(std::unique_ptr<cursor<E>> of, std::int64_t count)
        : of_(std::move(of)), count_(count), ended_(count == 0) {}
    bool next(std::optional<E>& element) override {
      if (ended_) return false;
      if (of_->next(element)) return some_ = true;
      // Repeating an empty pass would never end.
      ended_ = !some_ || ++done_ == count_;
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
      ended_ = count_ == 0;
    }

   private:
    std::unique_ptr<cursor<E>> of_;
    std::int64_t count_, done_ = 0;
    bool some_ = false, ended_;
  };
  std::int64_t count_;
};

/// shard, skip and take: the elements from `first` to before `end`, `step` apart; to the last one
/// if `end` is -1.
template <class E>
class range_stage final : public step_stage<E> {
 public:
  range_stage(stage_ref<E> of, std::int64_t first, std::int64_t step, std::int64_t end)
      : step_stage<E>(std::move(of)), first_(first), step_(step), end_(end) {}
  std::unique_ptr<cursor<E>> start() const override {
    return std::make_unique<pass>(*this, this->of_->start());
  }
  std::int64_t cardinality() const override {
    return ranged_cardinality(this->of_->cardinality(), first_, step_, end_);
  }

 private:
  class pass final : public cursor<E> {
   public:
    pass(const range_stage& s, std::unique_ptr<cursor<E>> of)
        : stage_(s), of_(std::move(of)), wanted_(s.first_) {}
    bool next(std::optional<E>& element) override {
      if (stage_.end_ >= 0 && wanted_ >= stage_.end_) return false;
      do {
        if (!of_->next(element)) return false;
      } while (at_++ != wanted_);
      wanted_ += stage_.step_;
      return true;
    }
    void restart() override {
      of_->restart();
      at_ = 0;
      wanted_ = stage_.first_;
    }

   private:
    const range_stage& stage_;
    std::unique_ptr<cursor<E>> of_;
    std::int64_t at_ = 0, wanted_;
  };
  std::int64_t first_, step_, end_;
};

// The arrays' form of each is compiled once.
extern template class shuffle_stage<row_list>;
extern template class repeat_stage<row_list>;
extern template class range_stage<row_list>;

}  // namespace deft::detail
