// SPDX-License-Identifier: Apache-2.0
// tests/transport/faulty_stream.hpp: a stream with faults.
#pragma once
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deft/transport/event_loop.hpp>
#include <deft/transport/stream.hpp>
#include <random>

namespace testing {

/// How often each fault happens, per thousand calls. Without cuts, everything sent arrives.
struct faults {
  unsigned short_reads = 0;   ///< one to sixteen bytes
  unsigned short_writes = 0;  ///< likewise
  unsigned stalls = 0;  ///< a read or write that finds no bytes or no room, although there are some
  unsigned delays = 0;  ///< an event that comes up to two milliseconds late
  unsigned cuts = 0;    ///< the stream breaks, perhaps within a message
};

/// A network that can go down: nothing arrives any more, without notice. Or it ends connections,
/// which writers notice at once and readers only `on_read`.
struct link {
  std::atomic<bool> down{false}, ended{false}, on_read{false};
};

/// Forwards to another stream, with faults determined by a seed. Connections are delayed
/// differently, so messages sent on two of them arrive in any order.
class faulty_stream final : public deft::detail::stream {
 public:
  faulty_stream(std::unique_ptr<stream> inner, const faults& f, std::uint64_t seed,
                std::shared_ptr<const link> way = std::make_shared<const link>())
      : inner_(std::move(inner)),
        faults_(f),
        way_(std::move(way)),
        reads_(seed),
        writes_(seed + 1),
        waits_(seed + 2) {}

  std::ptrdiff_t read(void* to, std::size_t most) noexcept override {
    if (way_->down) return shut_ ? 0 : -EAGAIN;
    if (cut(reads_) || (way_->ended && way_->on_read)) return -ECONNRESET;
    if (happens(reads_, faults_.stalls)) return -EAGAIN;
    if (happens(reads_, faults_.short_reads)) most = std::min<std::size_t>(most, 1 + reads_() % 16);
    return inner_->read(to, most);
  }
  std::ptrdiff_t write(const iovec* pieces, int count) noexcept override {
    if (way_->down) {  // the system takes the bytes, and keeps retransmitting
      std::size_t all = 0;
      for (int i = 0; i < count; ++i) all += pieces[i].iov_len;
      return static_cast<std::ptrdiff_t>(all);
    }
    if (way_->ended) return -EPIPE;
    if (cut(writes_)) return -ECONNRESET;
    if (happens(writes_, faults_.stalls)) return -EAGAIN;
    if (!happens(writes_, faults_.short_writes)) return inner_->write(pieces, count);
    const iovec some{pieces[0].iov_base,
                     std::min<std::size_t>(pieces[0].iov_len, 1 + writes_() % 16)};
    return inner_->write(&some, 1);
  }
  void wait(direction d, std::function<void()> then) override {
    std::unique_lock lock(waits_guard_);
    const bool late = happens(waits_, faults_.delays);
    const auto by = std::chrono::microseconds(waits_() % 2000);
    lock.unlock();
    if (!late) return inner_->wait(d, std::move(then));
    inner_->wait(d, [&l = loop(), by, then = std::move(then)] {
      auto timer = std::make_shared<boost::asio::steady_timer>(l.context(), by);
      timer->async_wait([timer, then](boost::system::error_code) { then(); });
    });
  }
  bool has_unread() const noexcept override { return !way_->down && inner_->has_unread(); }
  void shut(bool both) noexcept override {
    shut_ = both;
    inner_->shut(both);
  }
  bool shares_processor() const noexcept override { return inner_->shares_processor(); }
  std::string why(int failed) const override { return inner_->why(failed); }
  deft::detail::event_loop& loop() const noexcept override { return inner_->loop(); }

 private:
  using dice = std::minstd_rand;
  static bool happens(dice& d, unsigned in_a_thousand) {
    return in_a_thousand && d() % 1000 < in_a_thousand;
  }
  bool cut(dice& d) {
    if (happens(d, faults_.cuts)) cut_ = true;
    if (cut_) inner_->shut(true);
    return cut_;
  }

  const std::unique_ptr<stream> inner_;
  const faults faults_;
  const std::shared_ptr<const link> way_;
  dice reads_, writes_, waits_;  ///< for reading, writing and waiting
  std::mutex waits_guard_;
  std::atomic<bool> cut_{false}, shut_{false};
};

/// While this object lives, every new connection of the process has faults.
class faulty_network {
 public:
  explicit faulty_network(const faults& f, std::uint64_t seed = 1) {
    deft::detail::filter_streams(
        [f, way = way_, next = std::make_shared<std::uint64_t>(seed)](auto inner) {
          return std::make_unique<faulty_stream>(std::move(inner), f, *next += 3, way);
        });
  }
  /// The network of all connections that were made while this object lived.
  void go_down() { way_->down = true; }
  /// The same when this object is gone, so that later connections are sound.
  std::shared_ptr<link> handle() const { return way_; }
  ~faulty_network() { deft::detail::filter_streams(nullptr); }
  faulty_network(const faulty_network&) = delete;

 private:
  const std::shared_ptr<link> way_ = std::make_shared<link>();
};

}  // namespace testing
