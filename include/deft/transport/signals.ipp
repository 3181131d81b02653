// SPDX-License-Identifier: Apache-2.0
// deft/transport/signals.ipp: a thread that waits for Asio's signal_set.
#pragma once
#include <signal.h>

#include <deft/core/thread.hpp>
#include <deft/transport/asio.hpp>
#include <deft/transport/signals.hpp>
#include <thread>

namespace deft::detail {

class termination_signals::impl {
 public:
  explicit impl(std::function<void(int)> f) : f_(std::move(f)), set_(io_) {
    for (int number : {SIGINT, SIGTERM}) {
      struct sigaction now {};
      if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) set_.add(number);
    }
    set_.async_wait([this](const boost::system::error_code& failed, int number) {
      if (failed) return;
      set_.clear();  // first: a second signal may come while the first is being handled
      f_(number);
    });
    thread_ = start_thread([this] { io_.run(); });
  }
  ~impl() {
    io_.stop();
    thread_.join();
  }

 private:
  std::function<void(int)> f_;
  boost::asio::io_context io_;
  boost::asio::signal_set set_;
  std::thread thread_;
};

termination_signals::termination_signals(std::function<void(int)> f)
    : impl_(std::make_unique<impl>(std::move(f))) {}
termination_signals::~termination_signals() = default;

}  // namespace deft::detail
