// SPDX-License-Identifier: Apache-2.0
// deft/transport/frame.ipp: writing frames, and reading them with all checks.
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deft/core/printable.hpp>
#include <deft/transport/archive.hpp>
#include <deft/transport/frame.hpp>
#include <deft/transport/handshake.hpp>
#include <new>

namespace deft::ext {

void message::clear() {
  kind = message_kind::none;
  flags = 0;
  id = session = step = 0;
  spinning = spinning_for = 0;
  takes_credit = false;
  credit.reset();
  meta.clear();
  tensors.clear();
}

void encode_error(message& m, std::uint64_t id, const error& e) {
  m.clear();
  m.kind = message_kind::error;
  m.id = id;
  out_archive ar(m.meta);
  ar& static_cast<std::uint8_t>(e.code()) & static_cast<std::uint8_t>(e.reason()) & e.message() &
      e.node() & e.device() & e.where();
}

error decode_error(const message& m) {
  try {
    std::uint8_t code = 0, reason = 0;
    std::string sentence, node, device;
    owned_location location;
    in_archive ar(m.meta);
    ar& code& reason& sentence& node& device& location;
    ar.finish();
    bool known = code >= 1 && code <= static_cast<std::uint8_t>(errc::unauthenticated);
    // A peer of the same version knows the same reasons, but may say anything.
    const bool is_reason = reason <= static_cast<std::uint8_t>(last_error_reason);
    constexpr std::size_t longest_name = 1024;
    return error(known ? static_cast<errc>(code) : errc::unknown,
                 is_reason ? static_cast<error_reason>(reason) : error_reason::none,
                 printable(sentence), printable(node, longest_name),
                 {std::make_shared<const std::string>(printable(location.file, longest_name)),
                  location.line, location.approximate},
                 printable(device, longest_name));
  } catch (const error& e) {
    return error(errc::data_loss,
                 str("the peer sent an error that cannot be decoded: ", e.message()));
  }
}

}  // namespace deft::ext

namespace deft::detail {

namespace {
// What is allocated when it is announced; then twice as much as has arrived.
constexpr std::size_t first_step = 16 * 1024, first_elements = 256 * 1024;
constexpr std::size_t keep_at_most = 1024 * 1024;  // bytes of metadata kept for the next message
constexpr std::size_t reuse_at_most = 64 * 1024;   // and of a tensor
constexpr std::size_t credit_at = 62;              // in a header

template <class T>
void store(std::byte* to, T v) {
  v = little(v);
  std::memcpy(to, &v, sizeof v);
}
template <class T>
T load(const std::byte* from) {
  T v;
  std::memcpy(&v, from, sizeof v);
  return little(v);
}
}  // namespace

header_block encode_header(const frame_header& h) {
  header_block b{};
  store(&b[0], frame_magic);
  store(&b[4], h.version);
  store(&b[6], static_cast<std::uint16_t>(h.kind));
  store(&b[8], h.flags);
  store(&b[12], h.tensors);
  store(&b[16], h.meta);
  store(&b[24], h.payload);
  store(&b[32], h.id);
  store(&b[40], h.session);
  store(&b[48], h.step);
  store(&b[56], h.descriptors);
  b[credit_at] = static_cast<std::byte>(h.takes_credit);
  return b;
}

void check_magic(std::span<const std::byte> begin) {
  if (begin.size() < 4 || load<std::uint32_t>(begin.data()) == frame_magic) return;
  if (begin[0] == std::byte{22} && begin[1] == std::byte{3})  // a handshake's record of TLS
    fail(errc::unauthenticated,
         "the caller uses TLS, for which this process has no certificate: set --tls_cert, "
         "--tls_key and --tls_ca, or DEFT_TLS_CERT, DEFT_TLS_KEY and DEFT_TLS_CA");
  std::string seen;
  for (auto b : begin.first(std::min<std::size_t>(begin.size(), 8))) {
    auto c = std::to_integer<unsigned>(b);
    seen += {' ', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
  }
  fail(errc::data_loss, "received something other than a deft frame: it begins with", seen);
}

frame_header decode_header(std::span<const std::byte, header_bytes> b, const wire_limits& limits) {
  check_magic(b);
  frame_header h;
  h.version = load<std::uint16_t>(&b[4]);
  h.kind = static_cast<message_kind>(load<std::uint16_t>(&b[6]));
  h.flags = load<std::uint32_t>(&b[8]);
  h.tensors = load<std::uint32_t>(&b[12]);
  h.meta = load<std::uint64_t>(&b[16]);
  h.payload = load<std::uint64_t>(&b[24]);
  h.id = load<std::uint64_t>(&b[32]);
  h.session = load<std::uint64_t>(&b[40]);
  h.step = load<std::uint64_t>(&b[48]);
  h.descriptors = load<std::uint32_t>(&b[56]);
  h.spinning = std::to_integer<std::uint8_t>(b[spinning_at]);
  h.spinning_for = std::to_integer<std::uint8_t>(b[spinning_at + 1]);
  h.takes_credit = b[credit_at] == std::byte{1};
  if (h.version != protocol_version && h.kind != message_kind::refused)
    fail(errc::failed_precondition, "the peer uses version ", h.version,
         " of the protocol, and this process version ", protocol_version);
  auto bound = [](std::uint64_t n, std::uint64_t most, std::string_view what) {
    if (n > most)
      fail(errc::resource_exhausted, "a message with ", n, " ", what, " (limit ", most, ")");
  };
  bound(h.meta, limits.meta, "bytes of metadata");
  bound(h.tensors, limits.tensors, "tensors");
  bound(h.payload, limits.payload, "bytes of tensors");
  std::uint64_t n = h.tensors;
  if (h.kind == message_kind::none || load<std::uint16_t>(&b[credit_at]) > 1 ||
      h.descriptors % 8 != 0 || h.descriptors < n * descriptor_bytes ||
      h.descriptors > n * (descriptor_bytes + 8 * max_rank) || (n == 0 && h.payload != 0))
    fail(errc::data_loss, "the header of a frame is inconsistent");
  return h;
}

header_block encode_frame(const message& m, std::vector<std::byte>& descriptors) {
  frame_header h;
  h.version = protocol_version;
  h.kind = m.kind;
  h.flags = m.flags;
  h.id = m.id;
  h.session = m.session;
  h.step = m.step;
  h.meta = m.meta.size();
  h.takes_credit = m.takes_credit;
  if (m.tensors.size() > UINT32_MAX / 128)
    fail(errc::resource_exhausted, "cannot send a message with ", m.tensors.size(),
         " tensors (limit ", UINT32_MAX / 128, ")");
  h.tensors = static_cast<std::uint32_t>(m.tensors.size());
  std::size_t size = 0;
  for (const auto& t : m.tensors)
    size += descriptor_bytes + 8 * static_cast<std::size_t>(t.shape().rank());
  h.descriptors = static_cast<std::uint32_t>(size);
  descriptors.resize(size);
  std::byte* at = descriptors.data();
  for (const auto& t : m.tensors) {
    if (!t.valid()) fail(errc::internal, "cannot send an empty tensor");
    if (t.storage().home() && !t.storage().home()->on_host())
      fail(errc::internal, "cannot send a tensor that is in a device's memory");
    store(at, std::uint64_t{0});
    at[0] = static_cast<std::byte>(t.type());
    at[1] = static_cast<std::byte>(t.shape().rank());
    store(at + 8, static_cast<std::uint64_t>(t.bytes()));
    at += descriptor_bytes;
    for (auto e : t.shape()) {
      store(at, e);
      at += 8;
    }
    h.payload += t.bytes();
  }
  return encode_header(h);
}

std::vector<std::byte> flatten_frame(const message& m) {
  std::vector<std::byte> all, descriptors;
  auto append = [&](const void* data, std::size_t n) {
    auto* bytes = static_cast<const std::byte*>(data);
    all.insert(all.end(), bytes, bytes + n);
  };
  auto head = encode_frame(m, descriptors);
  append(head.data(), head.size());
  append(m.meta.data(), m.meta.size());
  append(descriptors.data(), descriptors.size());
  for (const auto& t : m.tensors) append(t.raw(), t.bytes());
  return all;
}

frame_reader::got frame_reader::take(stream& from, std::byte* to, std::size_t n) {
  while (done_ < n) {
    if (buffer_.size() > 0) {
      done_ += buffer_.take(to + done_, n - done_);
      continue;
    }
    bool direct = n - done_ >= read_buffer::direct_size;
    // Reading again at once would find nothing, except while a large piece is still arriving.
    if (std::exchange(goes_on_, false) && !direct && from.is_drained()) return got::part;
    const std::span<std::byte> into = direct ? std::span(to + done_, n - done_) : buffer_.space();
    if (into.empty()) throw std::bad_alloc();
    const std::ptrdiff_t r = from.read(into.data(), into.size());
    if (r == -EAGAIN || r == -EWOULDBLOCK) return got::part;
    if (r < 0) {
      if (const error* why = from.fault()) throw error(*why);
      throw error(errc::unavailable, from.why(static_cast<int>(-r)));
    }
    if (r == 0) return got::end;
    has_read_ = goes_on_ = true;
    if (direct)
      done_ += static_cast<std::size_t>(r);
    else
      buffer_.add(static_cast<std::size_t>(r));
  }
  done_ = 0;
  return got::all;
}

/// Allocated in steps.
frame_reader::got frame_reader::take(stream& from, std::vector<std::byte>& to, std::size_t n) {
  for (;;) {
    to.resize(std::min(n, std::max({first_step, to.capacity(), 2 * done_})));
    const got g = take(from, to.data(), to.size());
    if (g != got::all || to.size() == n) return g;
    done_ = to.size();
  }
}

/// The elements of a large tensor, into growing_. Its first bytes come before it takes even a
/// recycled block, which others may need.
frame_reader::got frame_reader::take_large(stream& from, std::size_t n) {
  if (first_) {
    const got g = take(from, static_cast<std::byte*>(first_.data()), first_elements);
    if (g != got::all) return g;
    growing_ = growing_block(n);
    growing_.claim(2 * first_elements);
    std::memcpy(growing_.data(), first_.data(), first_elements);
    first_.reset();
    done_ = first_elements;
  }
  for (;;) {
    const std::size_t there = std::min(n, growing_.claimed());
    const got g = take(from, growing_.data(), there);
    if (g != got::all || there == n) return g;
    done_ = there;
    growing_.claim(std::min(n, 2 * there));
  }
}

/// Called once the header is complete.
void frame_reader::start(message& m) {
  header_ = decode_header(head_, limits_);
  m.kind = header_.kind;
  m.flags = header_.flags;
  m.id = header_.id;
  m.session = header_.session;
  m.step = header_.step;
  m.spinning = header_.spinning;
  m.spinning_for = header_.spinning_for;
  m.takes_credit = header_.takes_credit;
}

/// Called once the descriptors are complete; all are checked before the first allocation.
void frame_reader::allocate(message& m) {
  const std::byte* at = descriptors_.data();
  const std::byte* end = at + descriptors_.size();
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < header_.tensors; ++i) {
    auto left = static_cast<std::size_t>(end - at);
    if (left < descriptor_bytes) fail(errc::data_loss, "the descriptors of a frame end early");
    auto type = static_cast<dtype>(at[0]);
    auto rank = std::to_integer<std::size_t>(at[1]);
    auto bytes = load<std::uint64_t>(at + 8);
    if (!is_valid(type) || rank > max_rank || left < descriptor_bytes + 8 * rank ||
        load<std::uint32_t>(at + 4) != 0 || load<std::uint16_t>(at + 2) != 0)
      fail(errc::data_loss, "the descriptor of tensor ", i, " is invalid");
    dims shape;
    for (std::size_t d = 0; d < rank; ++d)
      shape.push_back(load<std::int64_t>(at + descriptor_bytes + 8 * d));
    const auto known = checked_bytes(type, shape, false);
    // Of strings, whose number is not known, there are the offsets at least.
    if (type == dtype::string ? bytes < known + sizeof(std::int64_t) : bytes != known)
      fail(errc::data_loss, "tensor ", i, " is announced with ", bytes, " bytes, but is ", type,
           shape);
    if (bytes > header_.payload - sum)
      fail(errc::data_loss, "tensor ", i, " is larger than its frame: ", bytes, " bytes, ",
           header_.payload - sum, " left");
    sum += bytes;
    at += descriptor_bytes + 8 * rank;
  }
  if (at != end || sum != header_.payload)
    fail(errc::data_loss, "the descriptors of a frame do not add up to its ", header_.payload,
         " bytes");
  m.tensors.resize(header_.tensors);
}

any_array frame_reader::fitting(any_array&& old, dtype type, const dims& shape,
                                std::uint64_t bytes) {
  buffer b = std::move(old).take_storage();
  if (bytes <= reuse_at_most && b.unique() && b.home() == &host_memory() && b.capacity() >= bytes &&
      b.capacity() <= reuse_at_most)
    return any_array(type, shape, std::move(b));
  b.reset();
  return any_array(type, shape);
}

frame_reader::status frame_reader::advance(stream& from, message& m) {
  const auto s = go_on(from, m);
  buffer_.rest();
  return s;
}

frame_reader::status frame_reader::go_on(stream& from, message& m) {
  for (;;) {
    switch (stage_) {
      case stage::header: {
        got g = take(from, head_.data(), header_bytes);
        if (g != got::all)
          check_magic({head_.data(), done_});  // even if only part of it has arrived
        if (g == got::part) return status::more;
        if (g == got::end && done_ == 0) return status::end;
        if (g == got::end) throw error(errc::unavailable, "the stream ended within a message");
        start(m);
        stage_ = stage::meta;
        break;
      }
      case stage::meta: {
        got g = take(from, m.meta, header_.meta);
        if (g == got::part) return status::more;
        if (g == got::end) throw error(errc::unavailable, "the stream ended within a message");
        stage_ = stage::descriptors;
        break;
      }
      case stage::descriptors: {
        got g = take(from, descriptors_, header_.descriptors);
        if (g == got::part) return status::more;
        if (g == got::end) throw error(errc::unavailable, "the stream ended within a message");
        allocate(m);
        tensor_ = described_ = 0;
        allocated_ = false;
        stage_ = stage::payload;
        break;
      }
      case stage::payload: {
        if (tensor_ == m.tensors.size()) {
          stage_ = stage::header;
          return status::whole;
        }
        any_array& t = m.tensors[tensor_];
        const std::byte* at = descriptors_.data() + described_;
        std::size_t bytes = load<std::uint64_t>(at + 8);
        const bool large = bytes >= growing_block::least;
        const auto type = static_cast<dtype>(at[0]);
        // They are strings once all of them are there, and have been checked.
        const bool strings = type == dtype::string;
        const dtype arriving = strings ? dtype::uint8 : type;
        dims shape;
        if (large || strings || !allocated_)
          for (std::size_t d = 0; d < std::to_integer<std::size_t>(at[1]); ++d)
            shape.push_back(load<std::int64_t>(at + descriptor_bytes + 8 * d));
        if (!allocated_) {
          if (large)
            t = any_array(), first_ = buffer::host(first_elements);
          else
            t = fitting(std::move(t), arriving,
                        strings ? dims{static_cast<std::int64_t>(bytes)} : shape, bytes);
          allocated_ = true;
        }
        got g = large ? take_large(from, bytes)
                      : take(from, static_cast<std::byte*>(t.mutable_raw()), bytes);
        if (g == got::part) return status::more;
        if (g == got::end) throw error(errc::unavailable, "the stream ended within a message");
        if (large || strings)
          t = any_array(type, shape, large ? growing_.take() : std::move(t).take_storage());
        if (strings && !string_span::is_sound(t.raw(), t.elements(), bytes)) {
          t = any_array();
          fail(errc::data_loss, "tensor ", tensor_, " has strings whose offsets are not sound");
        }
        if (t.type() == dtype::boolean)
          for (std::size_t i = 0; i < bytes; ++i)
            if (static_cast<const std::uint8_t*>(t.raw())[i] > 1)
              fail(errc::data_loss, "tensor ", tensor_, " has a bool that is neither 0 nor 1");
        described_ += descriptor_bytes + 8 * static_cast<std::size_t>(t.shape().rank());
        allocated_ = false;
        ++tensor_;
        break;
      }
    }
  }
}

void trim(message& m) {
  m.credit.reset();
  if (m.meta.capacity() > keep_at_most) m.meta = {};
  if (m.tensors.capacity() > 1024) m.tensors = {};
  for (auto& t : m.tensors)
    if (t.storage().capacity() > reuse_at_most) t = any_array();
}

}  // namespace deft::detail

namespace deft::ext {}  // namespace deft::ext
