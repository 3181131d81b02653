// SPDX-License-Identifier: Apache-2.0
// deft/data/transform.hpp: the stages that call a function of the user for each element, and the
// sources that do. Each pass, and each thread of it, has its own copy of the function.
#pragma once
#include <cstddef>
#include <deft/data/stage.hpp>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <utility>

namespace deft::detail {

void check_interleave(std::int64_t cycle_length, std::int64_t block_length);
/// Throws invalid_argument if they differ.
void check_sizes(std::initializer_list<std::size_t> sizes);
std::int64_t filtered_cardinality(std::int64_t of);

/// The element that a function's result stands for: a tuple is one, anything else is its only
/// component.
template <class R>
struct element_of {
  using type = std::tuple<R>;
};
template <class... Ts>
struct element_of<std::tuple<Ts...>> {
  using type = std::tuple<Ts...>;
};

/// Calls a function with the components of an element, and makes an element of what it returns.
template <class F, class To>
class mapping {
 public:
  explicit mapping(F f) : f_(std::move(f)) {}
  template <class From>
  void operator()(From& from, std::optional<To>& to) {
    to.emplace(std::apply(f_, from));
  }

 private:
  F f_;
};

template <class From, class To, class Function>
class map_stage final : public step_stage<From, To> {
 public:
  map_stage(stage_ref<From> of, Function f)
      : step_stage<From, To>(std::move(of)), f_(std::move(f)) {}
  std::unique_ptr<cursor<To>> start() const override {
    return std::make_unique<pass>(this->of_->start(), f_);
  }

 private:
  class pass final : public cursor<To> {
   public:
    pass(std::unique_ptr<cursor<From>> of, Function f) : of_(std::move(of)), f_(std::move(f)) {}
    bool next(std::optional<To>& element) override {
      if (!of_->next(in_)) return false;
      f_(*in_, element);
      return true;
    }
    void restart() override { of_->restart(); }

   private:
    std::unique_ptr<cursor<From>> of_;
    Function f_;
    std::optional<From> in_;
  };
  Function f_;
};

template <class E, class Predicate>
class filter_stage final : public step_stage<E> {
 public:
  filter_stage(stage_ref<E> of, Predicate wanted)
      : step_stage<E>(std::move(of)), wanted_(std::move(wanted)) {}
  std::unique_ptr<cursor<E>> start() const override {
    return std::make_unique<pass>(this->of_->start(), wanted_);
  }
  std::int64_t cardinality() const override {
    return filtered_cardinality(this->of_->cardinality());
  }

 private:
  class pass final : public cursor<E> {
   public:
    pass(std::unique_ptr<cursor<E>> of, Predicate wanted)
        : of_(std::move(of)), wanted_(std::move(wanted)) {}
    bool next(std::optional<E>& element) override {
      while (of_->next(element))
        if (std::apply(wanted_, std::as_const(*element))) return true;
      return false;
    }
    void restart() override { of_->restart(); }

   private:
    std::unique_ptr<cursor<E>> of_;
    Predicate wanted_;
  };
  Predicate wanted_;
};

/// `Open` returns a stage for an element.
template <class From, class To, class Open>
class interleave_stage final : public step_stage<From, To> {
 public:
  interleave_stage(stage_ref<From> of, Open open, std::int64_t cycle_length,
                   std::int64_t block_length)
      : step_stage<From, To>(std::move(of)),
        open_(std::move(open)),
        cycle_(cycle_length),
        block_(block_length) {
    check_interleave(cycle_length, block_length);
  }
  std::unique_ptr<cursor<To>> start() const override {
    return std::make_unique<pass>(*this, this->of_->start());
  }
  std::int64_t cardinality() const override {
    return filtered_cardinality(this->of_->cardinality());
  }

 private:
  class pass final : public cursor<To> {
   public:
    pass(const interleave_stage& s, std::unique_ptr<cursor<From>> of)
        : stage_(s), of_(std::move(of)), open_(s.open_) {}
    bool next(std::optional<To>& element) override {
      // The place of one that has ended is filled in its next turn.
      for (; !of_ended_ || opened_ > 0;) {
        if (at_ == positions_.size() && !of_ended_ && positions_.size() < most())
          positions_.emplace_back();
        if (at_ == positions_.size()) at_ = 0;
        position& p = positions_[at_];
        if (p.elements) {
          if (p.elements->next(element)) {
            if (++in_block_ == stage_.block_) turn();
            return true;
          }
          p.elements.reset();  // before the stage that it refers to
          p.of.reset();
          --opened_;
          turn();
        } else if (of_ended_) {
          turn();
        } else if (of_->next(in_)) {
          p.of = std::apply(open_, *in_);
          p.elements = p.of->start();
          ++opened_;
        } else {
          of_ended_ = true;
        }
      }
      return false;
    }
    void restart() override {
      of_->restart();
      positions_.clear();
      at_ = opened_ = 0;
      in_block_ = 0;
      of_ended_ = false;
    }

   private:
    struct position {
      stage_ref<To> of;
      std::unique_ptr<cursor<To>> elements;
    };
    std::size_t most() const { return static_cast<std::size_t>(stage_.cycle_); }
    void turn() {
      in_block_ = 0;
      if (++at_ == most()) at_ = 0;
    }

    const interleave_stage& stage_;
    std::unique_ptr<cursor<From>> of_;
    Open open_;
    std::optional<From> in_;
    std::vector<position> positions_;
    std::size_t at_ = 0, opened_ = 0;
    std::int64_t in_block_ = 0;
    bool of_ended_ = false;
  };
  Open open_;
  std::int64_t cycle_, block_;
};

/// `Generator` returns an optional of an element, or of its only component.
template <class E, class Generator>
class generator_stage final : public stage<E> {
 public:
  explicit generator_stage(Generator g) : generator_(std::move(g)) {}
  std::unique_ptr<cursor<E>> start() const override { return std::make_unique<pass>(generator_); }
  std::int64_t cardinality() const override { return unknown_cardinality; }

 private:
  class pass final : public cursor<E> {
   public:
    explicit pass(const Generator& g) : original_(g), generator_(g) {}
    bool next(std::optional<E>& element) override {
      if (ended_) return false;
      if (auto made = (*generator_)())
        element.emplace(*std::move(made));
      else
        ended_ = true;
      return !ended_;
    }
    void restart() override {
      generator_.emplace(original_);
      ended_ = false;
    }

   private:
    const Generator& original_;
    std::optional<Generator> generator_;
    bool ended_ = false;
  };
  Generator generator_;
};

/// The elements of vectors: tuples of what is at the same index.
template <class... Ts>
class vector_stage final : public stage<std::tuple<Ts...>> {
 public:
  using value_type = std::tuple<Ts...>;
  explicit vector_stage(std::vector<Ts>... columns) : columns_(std::move(columns)...) {}
  std::unique_ptr<cursor<value_type>> start() const override {
    return std::make_unique<pass>(columns_);
  }
  std::int64_t cardinality() const override {
    return static_cast<std::int64_t>(std::get<0>(columns_).size());
  }

 private:
  using column_tuple = std::tuple<std::vector<Ts>...>;
  class pass final : public cursor<value_type> {
   public:
    explicit pass(const column_tuple& columns) : columns_(columns) {}
    bool next(std::optional<value_type>& element) override {
      if (at_ == std::get<0>(columns_).size()) return false;
      std::apply([&](const auto&... column) { element.emplace(column[at_]...); }, columns_);
      ++at_;
      return true;
    }
    void restart() override { at_ = 0; }

   private:
    const column_tuple& columns_;
    std::size_t at_ = 0;
  };
  column_tuple columns_;
};

}  // namespace deft::detail
