// SPDX-License-Identifier: Apache-2.0
// deft/session/wire/values.hpp: prepares feeds for messages, and checks fetched values.
#pragma once
#include <deft/core/feed_ref.hpp>
#include <deft/graph/graph_def.hpp>
#include <deft/graph/op_def.hpp>
#include <deft/transport/handshake.hpp>
#include <deft/transport/message.hpp>
#include <span>
#include <vector>

namespace deft::ext {

/// The array of a feed for a message; small borrowed ones are copied. Sets `borrows` if the
/// elements are the caller's: then no message may be queued any more when the run returns.
inline any_array fed_array(const feed_ref& f, bool& borrows) {
  constexpr std::size_t small = 64 << 10;
  any_array a = f.array();
  if (!a.storage().is_borrowed()) return a;
  if (a.bytes() <= small) return a.clone();
  borrows = true;
  return a;
}

/// Throws invalid_argument if `count` values do not fit into one answer.
inline void check_fetches(std::size_t count) {
  constexpr std::size_t most = wire_limits().tensors;
  if (count > most)
    fail(errc::invalid_argument, "a run fetches at most ", most, " values of other tasks, not ",
         count);
}

/// Throws invalid_argument if `count` values do not fit into one message to another task.
inline void check_feeds(std::size_t count) {
  constexpr std::size_t most = wire_limits().tensors;
  if (count > most)
    fail(errc::invalid_argument, "a run feeds at most ", most, " values to another task, not ",
         count);
}

/// Throws unimplemented, naming the operation of `n`, if the program of `peer` does not have it.
inline void check_knows(const peer_info& peer, const node_def& n) {
  if (!peer.knows(*n.op))
    throw error(errc::unimplemented, str("[", n.op->name, "] ", peer, " ", peer.why_unknown(*n.op)),
                n.name, n.location);
}

/// Feeds that share the tensors of a message, which must outlive them.
inline std::vector<feed_ref> feeds_of(std::span<const any_array> tensors) {
  std::vector<feed_ref> feeds;
  for (const auto& t : tensors) feeds.push_back(feed_ref::share(t));
  return feeds;
}

/// Throws internal unless value `v`, an answer of `who`, has the declared dtype and shape.
template <class Who>
void check_answer(const any_array& v, const tensor_type& declared, const Who& who) {
  if (v.type() != declared.type || !fits(declared.shape, v.shape()))
    fail(errc::internal, who, " answered with ", v.type(), v.shape(), " instead of ", declared);
}

}  // namespace deft::ext
