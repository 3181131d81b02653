// SPDX-License-Identifier: Apache-2.0
// deft/transport/shared_slots.ipp: making, passing and mapping memory, and its slots.
#pragma once
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deft/core/log.hpp>
#include <deft/transport/address.hpp>
#include <deft/transport/shared_slots.hpp>
#include <numeric>

namespace deft::detail {

namespace {
std::atomic<std::size_t> shares_used{0};
}  // namespace

std::size_t descriptors_for_memory() {
  rlimit most{};
  getrlimit(RLIMIT_NOFILE, &most);
  return static_cast<std::size_t>(most.rlim_cur / 4);
}

bool memory_share::take() noexcept {
  taken_ = shares_used.fetch_add(1) < descriptors_for_memory();
  if (!taken_) shares_used.fetch_sub(1);
  return taken_;
}
void memory_share::give_back() noexcept {
  if (std::exchange(taken_, false)) shares_used.fetch_sub(1);
}

std::ptrdiff_t result_of_call(std::ptrdiff_t n) noexcept {
  if (n >= 0) return n;
  return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
}

const char* slot_reader::open(file_descriptor memory, file_descriptor credits) noexcept {
  if (!memory || !credits || !share_.take()) return nullptr;
  if (!shared_memory::is_sealed(memory, slots * slot_bytes))
    return "the memory that it shares is not sealed, or does not have the agreed size";
  auto mapped = shared_memory::map(memory, slots * slot_bytes);
  if (!mapped) return nullptr;
  memory_.emplace(std::move(*mapped));
  credits_ = std::move(credits);
  std::array<std::uint8_t, slots> all;
  std::iota(all.rbegin(), all.rend(), std::uint8_t{0});
  return give_back(all);
}

/// It is no fault if the peer has closed its end: it will not write to the memory either.
const char* slot_reader::give_back(std::span<const std::uint8_t> some) noexcept {
  const auto sent =
      result_of_call(::send(credits_.get(), some.data(), some.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  if (sent == std::ssize(some) || sent == -EPIPE || sent == -ECONNRESET) return nullptr;
  return "it does not accept the returned slots of its shared memory";
}

std::optional<slot_writer::offer> slot_writer::make() noexcept {
  if (!share_.take()) return refuse(EMFILE), std::nullopt;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return refuse(errno), std::nullopt;
  file_descriptor mine(ends[0]), of_peer(ends[1]);
  auto made = shared_memory::make(slots * slot_bytes);
  if (!made) return refuse(errno), std::nullopt;
  return offer{std::move(made->first), std::move(made->second), std::move(mine),
               std::move(of_peer)};
}

slot_writer::~slot_writer() {
  boost::system::error_code ignored;
  if (waits_.is_open()) waits_.release(ignored);
}

void slot_writer::open(offer&& o) noexcept {
  std::lock_guard lock(shut_guard_);
  returned_ = std::move(o.mine);
  if (shut_) ::shutdown(returned_.get(), SHUT_RDWR);
  memory_.emplace(std::move(o.memory));
}

bool slot_writer::refuse(int reason) noexcept {
  refused_ = true;
  share_.give_back();
  try {
    logging::info("a local socket works without shared memory: ", text_of_errno(reason));
  } catch (const std::exception&) {
    // The message is lost.
  }
  return false;
}

std::ptrdiff_t slot_writer::take() noexcept {
  std::array<std::uint8_t, slots + 1> some;
  const auto n = result_of_call(::recv(returned_.get(), some.data(), some.size(), MSG_DONTWAIT));
  if (n <= 0 && free_ > 0) return 1;
  if (n <= 0) return n == 0 ? -EPIPE : n;
  for (std::uint8_t slot : std::span(some).first(static_cast<std::size_t>(n))) {
    if (slot >= slots || std::ranges::count(std::span(order_).first(free_), slot) > 0)
      return -EPROTO;
    order_[free_++] = slot;
  }
  granted_ = true;
  return 1;
}

std::size_t slot_writer::fill(const iovec& piece) noexcept {
  const std::size_t n = std::min(piece.iov_len, slot_bytes);
  std::memcpy(memory_->data() + next() * slot_bytes, piece.iov_base, n);
  return n;
}
void slot_writer::pass() noexcept { --free_; }

void slot_writer::wait(std::function<void(boost::system::error_code)> then) {
  boost::system::error_code failed;
  waits_.assign(boost::asio::local::stream_protocol(), returned_.get(), failed);
  if (failed) return boost::asio::post(waits_.get_executor(), [then, failed] { then(failed); });
  waits_.async_wait(boost::asio::socket_base::wait_read,
                    [this, then = std::move(then)](boost::system::error_code e) {
                      waits_.release();
                      then(e);
                    });
}
void slot_writer::shut() noexcept {
  std::lock_guard lock(shut_guard_);
  shut_ = true;
  if (returned_) ::shutdown(returned_.get(), SHUT_RDWR);
}
void slot_writer::close() noexcept {
  refuse(ENOMEM);
  std::lock_guard lock(shut_guard_);
  returned_ = {};
  memory_.reset();
}

}  // namespace deft::detail
