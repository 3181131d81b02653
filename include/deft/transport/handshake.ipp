// SPDX-License-Identifier: Apache-2.0
// deft/transport/handshake.ipp: the messages of the handshake.
#pragma once
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deft/core/failure.hpp>
#include <deft/core/hash.hpp>
#include <deft/core/log.hpp>
#include <deft/core/printable.hpp>
#include <deft/device/name.hpp>
#include <deft/transport/address.hpp>
#include <deft/transport/archive.hpp>
#include <deft/transport/connection_state.hpp>
#include <deft/transport/handshake.hpp>
#include <deft/transport/local.hpp>
#include <deft/transport/tls.hpp>
#include <mutex>

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

namespace deft::ext {

namespace {

std::string catalog_entry(const op_def& op) {
  const auto body = op.functions ? op.functions->source : nullptr;
  return str(op.name, "/", op.version, body ? str("/", hash_text(body())) : std::string());
}

}  // namespace

bool peer_info::knows(const op_def& op) const {
  auto in = [&](const std::vector<std::string>& list) {
    return std::binary_search(list.begin(), list.end(), catalog_entry(op));
  };
  return is_known(op) ? same_catalog || !in(lacks) : in(offers);
}

std::string peer_info::why_unknown(const op_def& op) const {
  const std::string same = str(op.name, "/", op.version, "/");
  const auto other = std::lower_bound(offers.begin(), offers.end(), same);
  if (other != offers.end() && other->starts_with(same))
    return "has another body of this operation: both programs must be built from the same source";
  return str("does not have version ", op.version,
             " of this operation: its program must be built with it");
}

std::string peer_info::to_string() const {
  if (name.empty()) return address.empty() ? "the peer" : address;
  return address.empty() ? name : str(name, " at ", address);
}

}  // namespace deft::ext

namespace deft::detail {

/// What two processes compare: the operations of one of them.
struct process_catalog {
  std::vector<std::string> list;  ///< see catalog_list
  std::uint64_t hash = 0;         ///< 0 for an empty list
};

/// This process's catalog; made anew only after an operation has been added.
inline std::shared_ptr<const process_catalog> own_catalog() {
  // Never destroyed: threads that serve connections outlive main's statics.
  static auto& guard = *new std::mutex;
  static auto& last = *new std::shared_ptr<const process_catalog>;
  std::lock_guard lock(guard);
  if (last && last->list.size() == known_op_count()) return last;
  auto fresh = std::make_shared<process_catalog>();
  for (const op_def* d : known_ops()) fresh->list.push_back(catalog_entry(*d));
  std::ranges::sort(fresh->list);
  fresh->hash = fresh->list.size();
  for (const auto& op : fresh->list) fresh->hash = mix(fresh->hash, hash_text(op));
  return last = std::move(fresh);
}

}  // namespace deft::detail

namespace deft::ext {

task_list::task_list(std::vector<std::string> lines)
    : lines_(std::move(lines)), hash_(lines_.size()) {
  for (const auto& line : lines_) hash_ = mix(hash_, hash_text(line));
}

namespace {

/// The beginning of the line of task `name`; empty if it is not the name of a task.
std::string beginning_of_line(const std::string& name) {
  device_name task;
  if (failure_of([&] { task = parse_device(name); }) || to_string(task) != name) return {};
  if (task.job.empty() || !task.task || task.replica != 0 || !task.type.empty()) return {};
  return str("/job:", task.job, "/task:", *task.task, " at ");
}

}  // namespace

bool task_list::is_open(const std::string& name) const {
  const std::string begin = beginning_of_line(name);
  if (begin.empty()) return false;
  return std::ranges::any_of(lines_, [&](const std::string& line) {
    return line.starts_with(begin) && detail::is_any_address(line.substr(begin.size()));
  });
}

task_list task_list::without_addresses(const std::vector<std::string>& names) const {
  std::vector<std::string> lines = lines_;
  for (const auto& name : names)
    if (const std::string begin = beginning_of_line(name); !begin.empty())
      for (auto& line : lines)
        if (line.starts_with(begin)) line = begin.substr(0, begin.size() - 4);
  return lines;
}

std::vector<std::string> catalog_list() { return detail::own_catalog()->list; }

}  // namespace deft::ext

namespace deft::detail {

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
  std::uint64_t cluster = 0;  ///< a hash; 0 for an empty list
  bool is_open = false;       ///< its own address there is that of all interfaces
  std::uint64_t catalog = 0;  ///< a hash, likewise
  nonce random{};
  bool has_secret = false;
  std::uint32_t heartbeat_timeout = 0;
  credit_window window;
  std::uint64_t reach = 0;  ///< local_reach() of a client that would use a local socket

  static introduction of(const process_identity& self, const process_catalog& catalog) {
    introduction i{self.name,
                   self.incarnation,
                   self.cluster.hash(),
                   self.cluster.is_open(self.name),
                   catalog.hash,
                   {},
                   !self.credentials.secret.empty(),
                   static_cast<std::uint32_t>(self.heartbeat_timeout.count()),
                   self.window,
                   0};
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
  ar& i.name& i.incarnation& i.cluster& i.is_open& i.catalog& i.random& i.has_secret& i
      .heartbeat_timeout;
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

/// What is left to compare of a cluster's tasks if two ends were given different lists: an end
/// whose own address is that of all interfaces is known to others by another one.
inline task_list comparable(const task_list& tasks, const introduction& a, const introduction& b) {
  std::vector<std::string> open;
  for (const auto* i : {&a, &b})
    if (i->is_open) open.push_back(i->name);
  return tasks.without_addresses(open);
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
             ", and the caller with ",
             other == theirs.end() ? "no further task" : printable(*other, 256));
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
  throw error(why.code(), str("cannot connect to ", peer, ": ", why.message()));
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

namespace deft::ext {

std::uint64_t random_incarnation() {
  std::uint64_t n = 0;
  while (n == 0) detail::random_bytes(&n, sizeof n);
  return n;
}

}  // namespace deft::ext
