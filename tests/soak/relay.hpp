// SPDX-License-Identifier: Apache-2.0
// tests/soak/relay.hpp: TCP connections passed on to tasks, some of them badly.
#pragma once
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <boost/asio.hpp>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "session/mutate.hpp"

namespace soak {

/// What is done to a connection.
enum class harm {
  end,       ///< both ends see an orderly end
  reset,     ///< both ends see a reset
  truncate,  ///< part of what comes next is passed on, then a reset
  swallow,   ///< what one end sends is acknowledged and dropped for some time, then a reset
  stall,     ///< nothing is passed on for some time
};
inline constexpr std::array<const char*, 5> harm_names{"ended", "reset", "truncated", "swallowed",
                                                       "stalled"};

/// One address for each task, which stays while processes come and go behind it. Runs a thread.
class relay {
  using tcp = boost::asio::ip::tcp;
  using clock = std::chrono::steady_clock;

 public:
  explicit relay(int tasks) {
    for (int i = 0; i < tasks; ++i) entries_.push_back(std::make_unique<entry>(io_));
    for (auto& e : entries_) accept(*e);
    thread_ = std::thread([this] { io_.run(); });
  }
  ~relay() {
    io_.stop();
    thread_.join();
  }
  relay(const relay&) = delete;

  /// What the other tasks are told.
  std::string address(int task) const {
    return deft::ext::str("127.0.0.1:", at(task).acceptor.local_endpoint().port());
  }
  /// Where the task itself listens; 0: callers are turned away.
  void lead_to(int task, std::uint16_t port) { at(task).port = port; }

  /// Does that to one of the connections; false if there is none.
  bool inflict(harm h, std::chrono::milliseconds time, testing::dice& d) {
    return on_thread([&] {
      std::erase_if(links_, [](const auto& l) { return l.expired(); });
      if (links_.empty()) return false;
      if (auto l = d.pick(links_).lock()) l->suffer(h, time, d.below(2));
      return true;
    });
  }
  /// From now on everything is passed on.
  void heal() {
    on_thread([&] {
      for (const auto& weak : links_)
        if (auto l = weak.lock()) l->heal();
      return true;
    });
  }

 private:
  struct entry {
    explicit entry(boost::asio::io_context& io)
        : acceptor(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)) {}
    tcp::acceptor acceptor;
    std::atomic<std::uint16_t> port{0};
  };

  /// A caller's connection and that to its task. Lives as long as it waits for something.
  class link : public std::enable_shared_from_this<link> {
   public:
    link(tcp::socket caller, boost::asio::io_context& io)
        : ends_{std::move(caller), tcp::socket(io)}, timers_{timer(io), timer(io)} {}

    void connect(std::uint16_t port) {
      if (port == 0) return reset();
      ends_[1].async_connect({boost::asio::ip::address_v4::loopback(), port},
                             [self = shared_from_this()](boost::system::error_code failed) {
                               if (failed) return self->reset();
                               for (auto& s : self->ends_)
                                 s.set_option(tcp::no_delay(true), failed);
                               self->read(0);
                               self->read(1);
                             });
    }
    void suffer(harm h, std::chrono::milliseconds time, std::size_t from) {
      switch (h) {
        case harm::end:
          return close();
        case harm::reset:
          return reset();
        case harm::truncate:
          truncates_ = true;
          return reset_in(time);  // where nothing comes
        case harm::swallow:
          swallows_[from] = true;
          return reset_in(time);
        case harm::stall:
          stalled_until_ = clock::now() + time;
          return;
      }
    }
    void heal() {
      stalled_until_ = {};
      for (auto& t : timers_) t.cancel();
      if (truncates_ || swallows_[0] || swallows_[1]) reset();
    }

   private:
    using timer = boost::asio::steady_timer;

    /// From one end to the other, over and over.
    void read(std::size_t from) {
      ends_[from].async_read_some(
          boost::asio::buffer(buffers_[from]),
          [self = shared_from_this(), from](boost::system::error_code failed, std::size_t n) {
            self->pass_on(from, failed, n);
          });
    }
    void pass_on(std::size_t from, boost::system::error_code failed, std::size_t n) {
      if (clock::now() < stalled_until_) {
        timers_[from].expires_at(stalled_until_);
        timers_[from].async_wait(
            [self = shared_from_this(), from, failed, n](auto) { self->pass_on(from, failed, n); });
        return;
      }
      if (failed == boost::asio::error::eof) {
        ends_[1 - from].shutdown(tcp::socket::shutdown_send, failed);
        if (std::exchange(ended_, true)) close();
        return;
      }
      if (failed) return reset();
      if (swallows_[from]) return read(from);
      if (truncates_) n /= 2;
      boost::asio::async_write(
          ends_[1 - from], boost::asio::buffer(buffers_[from], n),
          [self = shared_from_this(), from](boost::system::error_code failed, std::size_t) {
            if (failed || self->truncates_) return self->reset();
            self->read(from);
          });
    }
    void reset_in(std::chrono::milliseconds time) {
      auto t = std::make_shared<timer>(ends_[0].get_executor(), time);
      t->async_wait([self = shared_from_this(), t](auto) { self->reset(); });
    }
    void reset() {
      const linger hard{1, 0};
      for (auto& s : ends_)
        if (s.is_open()) ::setsockopt(s.native_handle(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
      close();
    }
    void close() {
      boost::system::error_code ignored;
      for (auto& s : ends_) s.close(ignored);
      for (auto& t : timers_) t.cancel();
      stalled_until_ = {};
    }

    std::array<tcp::socket, 2> ends_;  ///< the caller's and the task's
    std::array<std::array<char, 65'536>, 2> buffers_;
    std::array<timer, 2> timers_;
    std::array<bool, 2> swallows_{};
    bool truncates_ = false, ended_ = false;
    clock::time_point stalled_until_{};
  };

  entry& at(int task) const { return *entries_[static_cast<std::size_t>(task)]; }
  void accept(entry& e) {
    e.acceptor.async_accept([this, &e](boost::system::error_code failed, tcp::socket caller) {
      if (!failed) {
        auto l = std::make_shared<link>(std::move(caller), io_);
        std::erase_if(links_, [](const auto& other) { return other.expired(); });
        links_.push_back(l);
        l->connect(e.port);
      }
      accept(e);
    });
  }
  template <class F>
  bool on_thread(F&& f) {
    std::promise<bool> done;
    boost::asio::post(io_, [&] { done.set_value(f()); });
    return done.get_future().get();
  }

  boost::asio::io_context io_{1};
  std::vector<std::unique_ptr<entry>> entries_;
  std::vector<std::weak_ptr<link>> links_;  ///< of the thread
  std::thread thread_;
};

}  // namespace soak
