// SPDX-License-Identifier: Apache-2.0
// deft/data/background.ipp: how threads fill slots in order.
#pragma once
#include <condition_variable>
#include <deft/core/error.hpp>
#include <deft/core/thread.hpp>
#include <deft/data/background.hpp>
#include <exception>
#include <mutex>

namespace deft::detail {

void check_prefetch(std::int64_t n) {
  if (n < 1 || n > 1'000'000)
    fail(errc::invalid_argument, "[prefetch] expects 1 to 1,000,000 elements, got ", n);
}
void check_threads(int n) {
  if (n < 0 || n > 1024) fail(errc::invalid_argument, "[map] expects 0 to 1,024 threads, got ", n);
}

class background::state {
 public:
  state(std::size_t threads, std::size_t slots) : filled_(slots), wanted_(threads) {}

  std::optional<std::size_t> take(background& of) {
    std::unique_lock lock(mutex_);
    if (over_) return {};
    if (threads_.empty()) start(of);
    const std::size_t at = taken_ % filled_.size();
    const auto is_there = [&] { return filled_[at].ready || (ended_ && taken_ == pulled_); };
    if (!is_there()) {
      some_free_.notify_one();
      waiting_ = true;
      some_filled_.wait(lock, is_there);
      waiting_ = false;
    }
    if (!filled_[at].ready) {
      over_ = true;
      return {};
    }
    if (std::exception_ptr failure = std::move(filled_[at].failure)) {
      over_ = true;
      std::rethrow_exception(std::move(failure));
    }
    return at;
  }
  void free_taken() {
    const std::lock_guard lock(mutex_);
    filled_[taken_++ % filled_.size()].ready = false;
    // Of many slots not for each, as waking a thread costs more than many an element does.
    if (filled_.size() < 16 || 2 * (pulled_ - taken_) <= filled_.size()) some_free_.notify_one();
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      some_free_.notify_all();
    }
    for (std::thread& t : threads_) t.join();
    threads_.clear();
    filled_.assign(filled_.size(), {});
    taken_ = pulled_ = 0;
    ended_ = over_ = pulling_ = false;
  }

 private:
  struct fill {
    bool ready = false;
    std::exception_ptr failure;
  };

  void start(background& of) {
    check_not_forked();
    for (std::size_t i = 0; i < wanted_; ++i)
      threads_.push_back(start_thread([this, &of, i] { run(of, i); }));
  }
  void run(background& of, std::size_t thread) {
    std::unique_lock lock(mutex_);
    for (;;) {
      some_free_.wait(lock,
                      [&] { return ended_ || (!pulling_ && pulled_ - taken_ < filled_.size()); });
      if (ended_) return;
      const std::size_t at = pulled_ % filled_.size();
      std::exception_ptr failure;
      bool got = false;
      pulling_ = true;
      lock.unlock();
      try {
        got = of.pull(at);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      pulling_ = false;
      pulled_ += got || failure;
      if (!got) ended_ = true;
      if (ended_)
        some_free_.notify_all();
      else
        some_free_.notify_one();  // the next to pull
      if (got) {
        lock.unlock();
        try {
          of.work(at, thread);
        } catch (...) {
          failure = std::current_exception();
        }
        lock.lock();
      }
      if (failure) ended_ = true;
      if (got || failure) {
        filled_[at].failure = std::move(failure);
        filled_[at].ready = true;
      }
      if (waiting_ && (ended_ || at == taken_ % filled_.size())) some_filled_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable some_free_, some_filled_;
  std::vector<fill> filled_;
  std::vector<std::thread> threads_;
  std::size_t wanted_;
  std::size_t taken_ = 0, pulled_ = 0;  ///< numbers of slots since the start
  bool pulling_ = false;
  bool waiting_ = false;  ///< take()
  bool ended_ = false;    ///< nothing more is pulled
  bool over_ = false;     ///< nothing more is taken
};

background::background(std::size_t threads, std::size_t slots)
    : state_(std::make_unique<state>(threads, slots)) {}
background::~background() = default;
std::optional<std::size_t> background::take() { return state_->take(*this); }
void background::free_taken() { state_->free_taken(); }
void background::stop() { state_->stop(); }

}  // namespace deft::detail
