// SPDX-License-Identifier: Apache-2.0
// deft/transport/handshake.ipp: the messages of the handshake.
#pragma once
#include <deft/core/log.hpp>
#include <deft/transport/introduction.ipp>
#include <deft/transport/local.hpp>

//   client  hello      name, incarnation, cluster, whether its own address there is that of all
//                      interfaces, catalog, nonce, whether it has a secret, its heartbeat timeout
//                      in milliseconds, its credit window, and which local sockets it can reach
//   server  challenge  the same about itself
//   client  proof      HMAC-SHA256(secret, "client", hello, challenge); its catalog if they differ;
//                      if the clusters do, its tasks, and their hash, without open addresses
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
// socket. The certificate that an end has shown must match the name that it gives. A server's name
// is that of a task; if the caller knows which, of that one.

namespace deft::detail {

void check_kind(const message& m, message_kind kind) {
  if (m.kind != kind || !m.tensors.empty())
    fail(errc::data_loss, "received message kind ", static_cast<int>(m.kind), ", expected ",
         static_cast<int>(kind));
}

struct client_handshake::said {
  enum class awaited { challenge, welcome, settled } next = awaited::challenge;
  std::shared_ptr<const process_catalog> catalog = own_catalog();
  introduction mine, theirs;
  message hello{message_kind::hello}, challenge;
  local_offer offer;
  bool certified = false;

  bool catalogs_differ() const { return mine.catalog != theirs.catalog; }
};

client_handshake::client_handshake(std::shared_ptr<connection_state> c,
                                   const process_identity& self, std::string task,
                                   bool local_sockets)
    : self_(self),
      task_(std::move(task)),
      said_(std::make_unique<said>()),
      connection_(std::move(c)) {
  said_->mine = introduction::of(self, *said_->catalog);
  if (local_sockets) said_->mine.reach = local_reach();
}
client_handshake::~client_handshake() = default;

void client_handshake::begin() {
  out_archive(said_->hello.meta) & said_->mine;
  connection_->send(said_->hello);
}

bool client_handshake::on_message(const message& m) {
  switch (said_->next) {
    case said::awaited::challenge:
      on_challenge(m);
      return false;
    case said::awaited::welcome:
      return on_welcome(m);
    case said::awaited::settled:
      break;
  }
  try {
    on_settled(m);
  } catch (const error& e) {
    return stay(e.message());
  }
  return accept();
}

void client_handshake::check_server(const std::string& name) const {
  const std::string& address = connection_->peer.address;
  if (!task_.empty() && name != task_)
    fail(errc::failed_precondition, address, " is ", name, ", not ", task_);
  if (beginning_of_line(name).empty())
    fail(errc::failed_precondition, address, " is \"", name,
         "\", which is not the name of a task of a cluster, such as /job:ps/replica:0/task:0");
}

void client_handshake::on_challenge(const message& m) {
  check_kind(m, message_kind::challenge);
  auto& [next, catalog, mine, theirs, hello, challenge, offer, certified] = *said_;
  challenge = m;
  from_bytes(challenge.meta, theirs);
  theirs.check();
  peer_info& peer = connection_->peer;
  certified = check_certificate(*connection_, theirs.name);
  check_server(theirs.name);
  peer.name = theirs.name;
  peer.incarnation = theirs.incarnation;
  if (theirs.has_secret && self_.credentials.secret.empty())
    fail(errc::unauthenticated, peer,
         " requires a secret: set DEFT_SECRET, or give its file by --secret_file");
  if (!theirs.has_secret && !self_.credentials.secret.empty())
    fail(errc::unauthenticated, peer, " has no secret, but this process requires one");

  const task_list tasks =
      mine.belongs_with(theirs) ? task_list() : comparable(self_.cluster, mine, theirs);
  message proof(message_kind::proof);
  out_archive(proof.meta) &
      seal_of(self_.credentials.secret, "client", hello.meta, challenge.meta) &
      (said_->catalogs_differ() ? catalog->list : std::vector<std::string>()) &
      shortened(tasks.lines()) & tasks.hash();
  connection_->send(proof);
  next = said::awaited::welcome;
}

bool client_handshake::on_welcome(const message& m) {
  check_kind(m, message_kind::welcome);
  peer_info& peer = connection_->peer;
  seal s;
  std::vector<std::string> list;
  from_bytes(m.meta, s, list, said_->offer);
  if (!same_seal(
          s, seal_of(self_.credentials.secret, "server", said_->hello.meta, said_->challenge.meta)))
    fail(errc::unauthenticated, peer, " cannot prove that it knows the secret");
  peer.authenticated = said_->certified || !self_.credentials.secret.empty();
  if (said_->catalogs_differ()) compare_catalogs(peer, said_->catalog->list, std::move(list));
  return said_->offer.name.empty() ? accept() : settle();
}

/// Claims the local socket that was offered.
bool client_handshake::settle() {
  boost::system::error_code failed;
  auto s = connect_local(said_->offer.name, connection_->loop(), failed);
  if (!s) return stay(failed.message());
  first_ = std::move(connection_);
  connection_ =
      std::make_shared<connection_state>(std::move(s), wire_limits::before_authentication());
  connection_->peer = first_->peer;
  connection_->peer.local = true;
  message m(message_kind::settle);
  m.meta = to_bytes(said_->offer.caller);
  said_->next = said::awaited::settled;
  try {
    connection_->send(m);
  } catch (const error& e) {
    return stay(e.message());
  }
  return false;
}

void client_handshake::on_settled(const message& m) {
  check_kind(m, message_kind::welcome);
  local_offer::token token;
  from_bytes(m.meta, token);
  if (!same_token(token, said_->offer.server))
    fail(errc::unauthenticated, "another process answered on the local socket");
  first_->close();
}

/// Continues on the first connection.
bool client_handshake::stay(const std::string& why) {
  if (first_) {
    connection_->close();
    connection_ = std::move(first_);
  }
  logging::info("cannot use a local socket to ", connection_->peer, ": ", why);
  connection_->send(message(message_kind::settle));
  return accept();
}

bool client_handshake::accept() {
  first_.reset();
  connection_->agree({self_.heartbeat_timeout, self_.window}, said_->theirs.terms());
  return true;
}

bool client_handshake::on_lost(const error& why) {
  if (first_) return stay(why.message());
  connection_->close();
  const peer_info& peer = connection_->peer;
  if (const auto r = connection_->refusal())
    throw error(r->code(), str(peer, " refused the connection: ", r->message()));
  if (why.message().find(peer.address) != std::string::npos) throw why;
  throw why.with_message(str("cannot connect to ", peer, ": ", why.message()));
}

void client_handshake::close() {
  if (first_) first_->close();
  connection_->close();
}

struct server_handshake::said {
  message hello, challenge;
  introduction mine, theirs;
  std::shared_ptr<const process_catalog> catalog = own_catalog();
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
  s->mine = introduction::of(self_, *s->catalog);
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
  std::uint64_t cluster_hash = 0;
  from_bytes(m.meta, s, list, cluster, cluster_hash);
  if (!same_seal(s, seal_of(self_.credentials.secret, "client", hello.meta, challenge.meta)))
    fail(errc::unauthenticated, self_.name, " does not accept the caller's secret");
  if (!mine.belongs_with(theirs))
    if (const task_list tasks = comparable(self_.cluster, mine, theirs);
        tasks.hash() != cluster_hash)
      fail(errc::failed_precondition, self_.name, " belongs to another cluster than \"",
           theirs.name, "\": ", first_difference(tasks.lines(), cluster));

  peer_info& peer = connection_.peer;
  peer.name = theirs.name;
  peer.incarnation = theirs.incarnation;
  peer.authenticated = certified || !self_.credentials.secret.empty();
  admit(peer);
  const bool differ = mine.catalog != theirs.catalog;
  if (differ) compare_catalogs(peer, catalog->list, std::move(list));
  message welcome(message_kind::welcome);
  out_archive(welcome.meta) &
      seal_of(self_.credentials.secret, "server", hello.meta, challenge.meta) &
      (differ ? catalog->list : std::vector<std::string>()) &
      (theirs.reach != 0 && theirs.reach == local_reach() ? offer() : local_offer());
  connection_.send(welcome);
}

}  // namespace deft::detail
