// SPDX-License-Identifier: Apache-2.0
// deft/transport/io_loop.ipp: Asio's event loop on one thread that lives as long as the process.
#pragma once
#ifndef BOOST_ASIO_DISABLE_SFINAE_VARIABLE_TEMPLATES
#define BOOST_ASIO_DISABLE_SFINAE_VARIABLE_TEMPLATES
#endif
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deft/transport/io_loop.hpp>
#include <future>
#include <thread>

namespace deft::detail {

/// Never destroyed: connections may outlive main's statics.
inline boost::asio::io_context& io_loop() {
  static auto& io = *[] {
    auto* made = new boost::asio::io_context(1);
    std::thread([made] {
      auto work = boost::asio::make_work_guard(*made);
      made->run();
    }).detach();
    return made;
  }();
  return io;
}

/// Lives on the I/O thread, but for cancel.
class socket_watch final : public io_watch, public std::enable_shared_from_this<socket_watch> {
 public:
  socket_watch(bool write, std::function<watch_again()> when_ready)
      : when_ready_(std::move(when_ready)),
        descriptor_(io_loop()),
        timer_(io_loop()),
        wait_(write ? boost::asio::posix::descriptor_base::wait_write
                    : boost::asio::posix::descriptor_base::wait_read) {}
  ~socket_watch() override { finish(); }

  void begin(int fd) {
    if (!when_ready_) return;  // cancelled before it began
    descriptor_.assign(fd);
    wait();
  }

  void cancel() override {
    std::promise<void> done;
    boost::asio::post(io_loop(), [this, &done] {
      finish();
      done.set_value();
    });
    done.get_future().wait();
  }

 private:
  void wait() {
    descriptor_.async_wait(
        wait_, [self = shared_from_this()](boost::system::error_code) { self->step(); });
  }
  void step() {
    if (!when_ready_) return;
    switch (when_ready_()) {
      case watch_again::ready:
        return wait();
      case watch_again::later:
        timer_.expires_after(std::chrono::milliseconds(100));
        return timer_.async_wait([self = shared_from_this()](boost::system::error_code) {
          if (self->when_ready_) self->wait();
        });
      case watch_again::never:
        return finish();
    }
  }
  /// The descriptor belongs to others: it is given up, not closed.
  void finish() {
    timer_.cancel();
    if (descriptor_.is_open()) descriptor_.release();
    auto last = std::move(when_ready_);
    when_ready_ = nullptr;
  }

  std::function<watch_again()> when_ready_;
  boost::asio::posix::stream_descriptor descriptor_;
  boost::asio::steady_timer timer_;
  boost::asio::posix::descriptor_base::wait_type wait_;
};

std::shared_ptr<io_watch> watch_socket(int fd, bool write,
                                       std::function<watch_again()> when_ready) {
  auto w = std::make_shared<socket_watch>(write, std::move(when_ready));
  boost::asio::post(io_loop(), [w, fd] { w->begin(fd); });
  return w;
}

}  // namespace deft::detail
