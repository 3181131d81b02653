// SPDX-License-Identifier: Apache-2.0
// deft/session/wire/codec.hpp: packs the structs of messages.hpp into messages, and unpacks them.
#pragma once
#include <deft/session/wire/messages.hpp>

namespace deft::ext::wire {

namespace detail {

class packer {
 public:
  explicit packer(message& m) : m_(m) {}
  void ids(std::uint64_t session, std::uint64_t other = 0) {
    m_.session = session, m_.step = other;
  }
  void flags(std::uint32_t f) { m_.flags = f; }
  /// The first key goes into the flags, as most messages have one.
  void keys(const std::vector<std::uint32_t>& keys) {
    m_.flags = keys.empty() ? 0 : keys[0];
    if (keys.size() > 1) meta(keys);
  }
  /// The flags say whether there is any, as most answers have none.
  void extras(const std::vector<std::uint32_t>& keys, const std::vector<trace_event>& trace) {
    m_.flags = !keys.empty() || !trace.empty();
    if (m_.flags) meta(keys, trace);
  }
  void tensors(std::vector<any_array>& v) { m_.tensors = std::move(v); }
  void credit(const std::shared_ptr<const void>&) { m_.takes_credit = true; }
  /// The elements of constants are sent as tensors.
  template <class... T>
  void meta(const T&... values) {
    out_archive ar(m_.meta, &m_.tensors);
    ((ar & values), ...);
    ar.flush();
  }

 private:
  message& m_;
};

class unpacker {
 public:
  explicit unpacker(message& m) : m_(m) {}
  void ids(std::uint64_t& session) { session = m_.session; }
  void ids(std::uint64_t& session, std::uint64_t& other) { session = m_.session, other = m_.step; }
  void flags(std::uint32_t& f) { f = m_.flags; }
  void flags(bool& f) { f = m_.flags != 0; }
  /// One key for each tensor of the message.
  void keys(std::vector<std::uint32_t>& keys) {
    if (m_.tensors.size() == 1)
      keys.assign(1, m_.flags);
    else
      meta(keys);
    if (keys.size() != m_.tensors.size())
      fail(errc::invalid_argument, keys.size(), " keys came with ", m_.tensors.size(), " values");
  }
  void extras(std::vector<std::uint32_t>& keys, std::vector<trace_event>& trace) {
    if (m_.flags) meta(keys, trace);
    if (keys.size() > m_.tensors.size())
      fail(errc::invalid_argument, keys.size(), " keys came with ", m_.tensors.size(), " values");
  }
  void tensors(std::vector<any_array>& v) { v = std::move(m_.tensors); }
  void credit(std::shared_ptr<const void>& c) { c = std::move(m_.credit); }
  template <class... T>
  void meta(T&... values) {
    in_archive ar(m_.meta, m_.tensors);
    ((ar & values), ...);
    ar.finish();
  }

 private:
  message& m_;
};

}  // namespace detail

/// The message for `m`, of which only the list of tensors is moved. An answer has no kind of its
/// own.
template <class M>
message pack(M&& m) {
  message packed(message_kind::reply);
  if constexpr (requires { std::remove_cvref_t<M>::number; })
    packed.kind = static_cast<message_kind>(std::remove_cvref_t<M>::number);
  detail::packer p(packed);
  m.fields(p);
  return packed;
}
/// The struct in a message. Throws data_loss or invalid_argument if its metadata is invalid.
template <class M>
M unpack(message& m) {
  M made;
  detail::unpacker u(m);
  made.fields(u);
  return made;
}
template <class M>
M unpack(message&& m) {
  return unpack<M>(m);
}

}  // namespace deft::ext::wire
