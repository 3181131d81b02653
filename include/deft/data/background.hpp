// SPDX-License-Identifier: Apache-2.0
// deft/data/background.hpp: the stages with threads of their own: prefetch, and map with threads.
#pragma once
#include <cstddef>
#include <deft/data/stage.hpp>

namespace deft::detail {

/// Throw invalid_argument.
void check_prefetch(std::int64_t n);
void check_threads(int n);

/// Threads that fill slots in turn, ahead of the one that takes them in the same order. Derived
/// classes own what is in the slots; their destructors call stop().
class background {
 public:
  background(std::size_t threads, std::size_t slots);
  virtual ~background();

 protected:
  /// Waits until the next slot is filled; nothing at the end. The first call starts the threads.
  /// Throws what pull or work threw for that slot, which is then the last one.
  std::optional<std::size_t> take();
  /// Lets the slot that was taken be filled again.
  void free_taken();
  /// Ends the threads after the call that each is in. The next take() begins anew.
  void stop();

  /// Gets the input of a slot, one call at a time; false at the end.
  virtual bool pull(std::size_t slot) = 0;
  /// Fills a slot from its input, on a thread of that number; several at a time.
  virtual void work(std::size_t slot, std::size_t thread) = 0;

 private:
  class state;
  std::unique_ptr<state> state_;
};

template <class E>
class prefetch_stage final : public step_stage<E> {
 public:
  prefetch_stage(stage_ref<E> of, std::int64_t n) : step_stage<E>(std::move(of)), n_(n) {
    check_prefetch(n);
  }
  std::unique_ptr<cursor<E>> start() const override {
    return std::make_unique<pass>(this->of_->start(), static_cast<std::size_t>(n_));
  }

 private:
  class pass final : public cursor<E>, private background {
   public:
    pass(std::unique_ptr<cursor<E>> of, std::size_t n)
        : background(1, n), of_(std::move(of)), slots_(n) {}
    ~pass() override { stop(); }
    bool next(std::optional<E>& element) override {
      const auto slot = take();
      if (!slot) return false;
      element.swap(slots_[*slot]);
      free_taken();
      return true;
    }
    void restart() override {
      stop();
      of_->restart();
    }

   private:
    bool pull(std::size_t slot) override { return of_->next(slots_[slot]); }
    void work(std::size_t, std::size_t) override {}

    std::unique_ptr<cursor<E>> of_;
    std::vector<std::optional<E>> slots_;
  };
  std::int64_t n_;
};

/// `Function` maps an element to an element.
template <class From, class To, class Function>
class parallel_map_stage final : public step_stage<From, To> {
 public:
  parallel_map_stage(stage_ref<From> of, Function f, int threads)
      : step_stage<From, To>(std::move(of)), f_(std::move(f)), threads_(threads) {
    check_threads(threads);
  }
  std::unique_ptr<cursor<To>> start() const override {
    return std::make_unique<pass>(this->of_->start(), f_, static_cast<std::size_t>(threads_));
  }

 private:
  struct slot_values {
    std::optional<From> in;
    std::optional<To> out;
  };
  class pass final : public cursor<To>, private background {
   public:
    // With so many, threads seldom sleep, and none waits for one that takes longer.
    static constexpr std::size_t slots_of_thread = 16;
    pass(std::unique_ptr<cursor<From>> of, const Function& f, std::size_t threads)
        : background(threads, slots_of_thread * threads),
          of_(std::move(of)),
          functions_(threads, f),
          slots_(slots_of_thread * threads) {}
    ~pass() override { stop(); }
    bool next(std::optional<To>& element) override {
      const auto slot = take();
      if (!slot) return false;
      element.swap(slots_[*slot].out);
      free_taken();
      return true;
    }
    void restart() override {
      stop();
      of_->restart();
    }

   private:
    bool pull(std::size_t slot) override { return of_->next(slots_[slot].in); }
    void work(std::size_t slot, std::size_t thread) override {
      functions_[thread](*slots_[slot].in, slots_[slot].out);
    }

    std::unique_ptr<cursor<From>> of_;
    std::vector<Function> functions_;
    std::vector<slot_values> slots_;
  };
  Function f_;
  int threads_;
};

}  // namespace deft::detail
