// SPDX-License-Identifier: Apache-2.0
// deft/transport/socket_calls.hpp: reading and writing Asio's non-blocking sockets, with results as
// those of streams. Internal.
#pragma once
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <deft/transport/asio.hpp>
#include <iterator>

namespace deft::detail {

/// Pieces as a buffer sequence of Asio.
class piece_buffers {
 public:
  using value_type = boost::asio::const_buffer;
  class const_iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = boost::asio::const_buffer;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = value_type;
    explicit const_iterator(const iovec* at = nullptr) : at_(at) {}
    value_type operator*() const { return {at_->iov_base, at_->iov_len}; }
    const_iterator& operator++() { return ++at_, *this; }
    const_iterator operator++(int) { return const_iterator(at_++); }
    const_iterator& operator--() { return --at_, *this; }
    const_iterator operator--(int) { return const_iterator(at_--); }
    bool operator==(const const_iterator&) const = default;

   private:
    const iovec* at_;
  };
  piece_buffers(const iovec* pieces, std::ptrdiff_t count) : begin_(pieces), end_(pieces + count) {}
  const_iterator begin() const { return begin_; }
  const_iterator end() const { return end_; }

 private:
  const_iterator begin_, end_;
};

/// `n` bytes, or -errno; -EAGAIN if the call should be repeated later.
inline std::ptrdiff_t result_of_call(std::size_t n, boost::system::error_code failed) noexcept {
  if (!failed) return static_cast<std::ptrdiff_t>(n);
  if (failed == boost::asio::error::would_block || failed == boost::asio::error::try_again ||
      failed == boost::asio::error::interrupted)
    return -EAGAIN;
  return -failed.value();
}

/// As stream::read and stream::write.
template <class Socket>
std::ptrdiff_t read_from(Socket& s, void* to, std::size_t most) noexcept {
  boost::system::error_code failed;
  const std::size_t n = s.read_some(boost::asio::buffer(to, most), failed);
  return failed == boost::asio::error::eof ? 0 : result_of_call(n, failed);
}
template <class Socket>
std::ptrdiff_t write_to(Socket& s, const iovec* pieces, std::ptrdiff_t count) noexcept {
  boost::system::error_code failed;
  const std::size_t n = s.write_some(piece_buffers(pieces, count), failed);
  return result_of_call(n, failed);
}

}  // namespace deft::detail
