// SPDX-License-Identifier: Apache-2.0
// deft/transport/introduction.ipp: what the two ends of a handshake say about themselves, and how
// each compares it with its own.
#pragma once
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deft/core/failure.hpp>
#include <deft/core/hash.hpp>
#include <deft/core/printable.hpp>
#include <deft/device/name.hpp>
#include <deft/transport/address.hpp>
#include <deft/transport/archive.hpp>
#include <deft/transport/connection_state.hpp>
#include <deft/transport/handshake.hpp>
#include <deft/transport/tls.hpp>
#include <mutex>

namespace deft::ext {

std::string catalog_entry(const op_def& op) {
  const std::string entry = str(op.name, "/", op.version);
  if (const auto body = op.functions ? op.functions->source : nullptr)
    return str(entry, "/", hash_text(body()));
  if (std::ranges::count(catalog_ops(), &op)) return entry;
  return str(entry, "/",
             hash_text(str(op.min_inputs, " ", op.max_inputs, " ", static_cast<int>(op.role), " ",
                           static_cast<int>(op.traits), " ", join(op.attributes, " "))));
}

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

}  // namespace deft::detail

namespace deft::ext {

std::uint64_t random_incarnation() {
  std::uint64_t n = 0;
  while (n == 0) detail::random_bytes(&n, sizeof n);
  return n;
}

}  // namespace deft::ext
