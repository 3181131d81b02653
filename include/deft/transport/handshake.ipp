// SPDX-License-Identifier: Apache-2.0
// deft/transport/handshake.ipp: the messages of the handshake.
#pragma once
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deft/core/hash.hpp>
#include <deft/core/log.hpp>
#include <deft/transport/archive.hpp>
#include <deft/transport/connection_state.hpp>
#include <deft/transport/handshake.hpp>
#include <deft/transport/local.hpp>
#include <deft/transport/tls.hpp>

//   client  hello      name, incarnation, cluster, catalog, nonce, whether it has a secret, its
//                      heartbeat timeout in milliseconds, its credit window, and which local
//                      sockets it can reach
//   server  challenge  the same about itself
//   client  proof      HMAC-SHA256(secret, "client", hello, challenge); its catalog if they differ
//   server  welcome    HMAC-SHA256(secret, "server", hello, challenge); its catalog if they differ;
//                      the name of a local socket, and two tokens
//
// If no local socket is named, that is all. Otherwise the client connects to it and continues
// there, or stays on the first connection:
//
//   client  settle     on the local socket: the first token       on the first connection: nothing
//   server  welcome    on the local socket: the second token; the first connection is closed
//
// Each proof covers both nonces and everything said so far, and names its role: it cannot be
// replayed to another process or reflected to its author. The server proves itself only to clients
// that have done so.
//
// With TLS all of this happens inside of it, with or without a secret, and never through a local
// socket. The certificate that an end has shown must match the name that it gives.

namespace deft {

bool peer_info::knows(const op_def& op) const {
  auto in = [&](const std::vector<std::string>& list) {
    return std::binary_search(list.begin(), list.end(), str(op.name, "/", op.version));
  };
  return is_known(op) ? same_catalog || !in(lacks) : in(offers);
}

std::string peer_info::to_string() const {
  if (name.empty()) return address.empty() ? "the peer" : address;
  return address.empty() ? name : str(name, " at ", address);
}

std::vector<std::string> catalog_list() {
  std::vector<std::string> list;
  for (const op_def* d : known_ops()) list.push_back(str(d->name, "/", d->version));
  std::sort(list.begin(), list.end());
  return list;
}

namespace detail {

// Not from OpenSSL, which would keep a generator for each serving thread.
void random_bytes(void* to, std::size_t n) {
  if (getentropy(to, n) != 0)
    fail(errc::internal, "the system has no random bytes (getentropy): ", text_of_errno(errno));
}

using nonce = std::array<std::uint8_t, 32>;

/// Text from peers goes to the log, so it must be printable.
inline bool can_be_shown(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 32 && c < 127; });
}

/// The contents of hello and challenge.
struct introduction {
  std::string name;
  std::uint64_t incarnation = 0;
  std::uint64_t cluster = 0, catalog = 0;  ///< hashes; 0 for an empty list
  nonce random{};
  bool has_secret = false;
  std::uint32_t heartbeat_timeout = 0;
  credit_window window;
  std::uint64_t reach = 0;  ///< local_reach() of a client that would use a local socket

  static introduction of(const process_identity& self, const std::vector<std::string>& catalog) {
    introduction i{self.name,
                   self.incarnation,
                   self.cluster.size(),
                   catalog.size(),
                   {},
                   !self.credentials.secret.empty(),
                   static_cast<std::uint32_t>(self.heartbeat_timeout.count()),
                   self.window,
                   0};
    for (const auto& task : self.cluster) i.cluster = mix(i.cluster, hash_text(task));
    for (const auto& op : catalog) i.catalog = mix(i.catalog, hash_text(op));
    random_bytes(i.random.data(), i.random.size());
    return i;
  }
  bool belongs_with(const introduction& other) const {
    return cluster == other.cluster || cluster == 0 || other.cluster == 0;
  }
  peer_terms terms() const { return {std::chrono::milliseconds(heartbeat_timeout), window}; }
  void check() const {
    if (name.size() > 256 || !can_be_shown(name))
      fail(errc::invalid_argument,
           "the peer's name is not printable, or longer than 256 characters");
  }
};
template <class Archive>
void serialize(Archive& ar, introduction& i, unsigned) {
  ar& i.name& i.incarnation& i.cluster& i.catalog& i.random& i.has_secret& i.heartbeat_timeout;
  ar& i.window.bytes& i.window.frames& i.reach;
}
template <class Archive>
void serialize(Archive& ar, local_offer& o, unsigned) {
  ar& o.name& o.caller& o.server;
}

bool same_token(const local_offer::token& a, const local_offer::token& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

using seal = std::vector<std::uint8_t>;

inline seal seal_of(const std::string& secret, std::string_view role,
                    const std::vector<std::byte>& hello, const std::vector<std::byte>& challenge) {
  if (secret.empty()) return {};
  std::vector<std::byte> said = to_bytes(role, hello, challenge);
  seal s(EVP_MAX_MD_SIZE);
  unsigned size = 0;
  if (!HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
            reinterpret_cast<const unsigned char*>(said.data()), said.size(), s.data(), &size))
    fail(errc::internal, "HMAC-SHA256 is not available");
  s.resize(size);
  return s;
}
inline bool same_seal(const seal& a, const seal& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

/// As much of a list of hosts as fits into a message before authentication; "…" marks what is left
/// out.
inline std::vector<std::string> shortened(std::vector<std::string> cluster) {
  constexpr std::size_t most = 16 << 10;
  std::size_t bytes = 0, n = 0;
  while (n < cluster.size() && (bytes += cluster[n].size() + 4) <= most) ++n;
  if (n < cluster.size()) cluster.resize(n), cluster.push_back("…");
  return cluster;
}
/// Describes the first difference of two lists of hosts.
inline std::string first_difference(const std::vector<std::string>& ours,
                                    const std::vector<std::string>& theirs) {
  auto [mine, other] = std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end());
  if ((mine == ours.end() && other == theirs.end()) ||
      (other != theirs.end() && !can_be_shown(*other)))
    return "they were started with different lists of hosts";
  return str("it was started with ", mine == ours.end() ? "no further task" : *mine,
             ", and the caller with ", other == theirs.end() ? "no further task" : *other);
}

inline void compare_catalogs(peer_info& peer, const std::vector<std::string>& ours,
                             std::vector<std::string> theirs) {
  peer.same_catalog = false;
  std::sort(theirs.begin(), theirs.end());
  std::set_difference(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                      std::back_inserter(peer.lacks));
  std::set_difference(theirs.begin(), theirs.end(), ours.begin(), ours.end(),
                      std::back_inserter(peer.offers));
}

/// Whether the peer has shown a certificate, that is, whether TLS is used. Throws unauthenticated
/// if the certificate does not match `name`, the name that the peer gives.
inline bool check_certificate(const connection_state& c, const std::string& name) {
  const std::vector<std::string>* uses = c.source().certified();
  if (uses && !certificate_fits(*uses, name))
    fail(errc::unauthenticated, "the certificate of \"", name, "\" at ", c.peer.address, " is for ",
         text_of_uses(*uses));
  return uses != nullptr;
}

void check_kind(const message& m, message_kind kind) {
  if (m.kind != kind || !m.tensors.empty())
    fail(errc::data_loss, "received message kind ", static_cast<int>(m.kind), ", expected ",
         static_cast<int>(kind));
}
inline void expect_message(connection_state& c, message& m, message_kind kind, deadline until) {
  if (!c.receive(m, until))
    throw error(errc::unavailable, str(c.peer, " ended the connection during the handshake"));
  check_kind(m, kind);
}

/// What a client learns about the server, besides peer_info.
struct reception {
  peer_terms terms;
  local_offer offer;
};

inline reception hello_as_client(connection_state& c, const process_identity& self, deadline until,
                                 std::uint64_t reach) {
  auto catalog = catalog_list();
  auto mine = introduction::of(self, catalog);
  mine.reach = reach;
  message hello(message_kind::hello);
  out_archive(hello.meta) & mine;
  c.send(hello);

  message challenge;
  introduction theirs;
  expect_message(c, challenge, message_kind::challenge, until);
  from_bytes(challenge.meta, theirs);
  theirs.check();
  const bool certified = check_certificate(c, theirs.name);
  c.peer.name = theirs.name;
  c.peer.incarnation = theirs.incarnation;
  if (theirs.has_secret && self.credentials.secret.empty())
    fail(errc::unauthenticated, c.peer,
         " requires a secret: set DEFT_SECRET, or give its file by --secret_file");
  if (!theirs.has_secret && !self.credentials.secret.empty())
    fail(errc::unauthenticated, c.peer, " has no secret, but this process requires one");

  bool differ = mine.catalog != theirs.catalog;
  message proof(message_kind::proof);
  out_archive(proof.meta) & seal_of(self.credentials.secret, "client", hello.meta, challenge.meta) &
      (differ ? catalog : std::vector<std::string>()) &
      (mine.belongs_with(theirs) ? std::vector<std::string>() : shortened(self.cluster));
  c.send(proof);

  message welcome;
  seal s;
  std::vector<std::string> list;
  local_offer offer;
  expect_message(c, welcome, message_kind::welcome, until);
  from_bytes(welcome.meta, s, list, offer);
  if (!same_seal(s, seal_of(self.credentials.secret, "server", hello.meta, challenge.meta)))
    fail(errc::unauthenticated, c.peer, " cannot prove that it knows the secret");
  c.peer.authenticated = certified || !self.credentials.secret.empty();
  if (differ) compare_catalogs(c.peer, catalog, std::move(list));
  return {theirs.terms(), std::move(offer)};
}

/// A connection through the offered local socket, which replaces `c`; `c` itself if that cannot be
/// made.
inline std::shared_ptr<connection_state> settle(const std::shared_ptr<connection_state>& c,
                                                const local_offer& offer, deadline until) {
  message m(message_kind::settle);
  std::shared_ptr<connection_state> there;
  try {
    boost::system::error_code failed;
    auto s = connect_local(offer.name, c->loop(), failed);
    if (!s) throw error(errc::unavailable, failed.message());
    there = std::make_shared<connection_state>(std::move(s), wire_limits::before_authentication());
    there->peer = c->peer;
    there->peer.local = true;
    m.meta = to_bytes(offer.caller);
    there->send(m);
    expect_message(*there, m, message_kind::welcome, until);
    local_offer::token token;
    from_bytes(m.meta, token);
    if (!same_token(token, offer.server))
      fail(errc::unauthenticated, "another process answered on the local socket");
    c->close();
    return there;
  } catch (const error& e) {
    if (there) there->close();
    if (e.code() == errc::deadline_exceeded) throw;
    logging::info("cannot use a local socket to ", c->peer, ": ", e.message());
  }
  m = message(message_kind::settle);
  c->send(m);
  return c;
}

std::shared_ptr<connection_state> shake_hands_as_client(const std::shared_ptr<connection_state>& c,
                                                        const process_identity& self,
                                                        deadline until, bool local_sockets) {
  try {
    const auto r = hello_as_client(*c, self, until, local_sockets ? local_reach() : 0);
    auto used = r.offer.name.empty() ? c : settle(c, r.offer, until);
    used->agree({self.heartbeat_timeout, self.window}, r.terms);
    return used;
  } catch (const error& e) {
    c->close();
    if (auto r = c->refusal())
      throw error(r->code(), str(c->peer, " refused the connection: ", r->message()));
    if (c->source().fault())
      throw error(e.code(), str("cannot connect to ", c->peer, ": ", e.message()));
    throw;
  }
}

struct server_handshake::said {
  message hello, challenge;
  introduction mine, theirs;
  std::vector<std::string> catalog = catalog_list();
  bool certified = false;
};

server_handshake::server_handshake(connection_state& c, const process_identity& self)
    : connection_(c), self_(self) {}
server_handshake::~server_handshake() = default;

peer_terms server_handshake::terms() const { return said_ ? said_->theirs.terms() : peer_terms(); }

bool server_handshake::on_message(const message& m,
                                  const std::function<void(const peer_info&)>& admit,
                                  const std::function<local_offer()>& offer) {
  if (said_) return on_proof(m, admit, offer), true;
  return on_hello(m), false;
}

void server_handshake::on_hello(const message& m) {
  check_kind(m, message_kind::hello);
  auto s = std::make_unique<said>();
  s->hello = m;
  from_bytes(m.meta, s->theirs);
  s->theirs.check();
  s->certified = check_certificate(connection_, s->theirs.name);
  s->mine = introduction::of(self_, s->catalog);
  s->challenge.kind = message_kind::challenge;
  out_archive(s->challenge.meta) & s->mine;
  connection_.send(s->challenge);
  said_ = std::move(s);
}

void server_handshake::on_proof(const message& m,
                                const std::function<void(const peer_info&)>& admit,
                                const std::function<local_offer()>& offer) {
  check_kind(m, message_kind::proof);
  const auto& [hello, challenge, mine, theirs, catalog, certified] = *said_;
  seal s;
  std::vector<std::string> list, cluster;
  from_bytes(m.meta, s, list, cluster);
  if (!same_seal(s, seal_of(self_.credentials.secret, "client", hello.meta, challenge.meta)))
    fail(errc::unauthenticated, self_.name, " does not accept the caller's secret");
  if (!mine.belongs_with(theirs))
    fail(errc::failed_precondition, self_.name, " belongs to another cluster than \"", theirs.name,
         "\": ", first_difference(self_.cluster, cluster));

  peer_info& peer = connection_.peer;
  peer.name = theirs.name;
  peer.incarnation = theirs.incarnation;
  peer.authenticated = certified || !self_.credentials.secret.empty();
  admit(peer);
  const bool differ = mine.catalog != theirs.catalog;
  if (differ) compare_catalogs(peer, catalog, std::move(list));
  message welcome(message_kind::welcome);
  out_archive(welcome.meta) &
      seal_of(self_.credentials.secret, "server", hello.meta, challenge.meta) &
      (differ ? catalog : std::vector<std::string>()) &
      (theirs.reach != 0 && theirs.reach == local_reach() ? offer() : local_offer());
  connection_.send(welcome);
}

}  // namespace detail

std::uint64_t random_incarnation() {
  std::uint64_t n = 0;
  while (n == 0) detail::random_bytes(&n, sizeof n);
  return n;
}

}  // namespace deft
