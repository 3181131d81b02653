// SPDX-License-Identifier: Apache-2.0
// deft/transport/tls.hpp: TLS 1.3 over another stream; both ends show a certificate. Internal.
//
// TLS checks that the authority has signed it; the handshake of deft checks that it matches the
// name that the peer gives (tls_context.hpp).
#pragma once
#include <cstdint>
#include <deft/transport/stream.hpp>
#include <deft/transport/tls_context.hpp>
#include <memory>

namespace deft::detail {

enum class tls_end { caller, server };

/// TLS over `inner`. Its handshake proceeds whenever something is read, written or waited for;
/// until it is done nothing can be read or written. A peer that is refused is told so, and the
/// reason becomes the stream's fault(). Keys are replaced after `records_of_a_key` records of 16
/// KB: AES-GCM is good for 2^24.5 (RFC 8446, 5.5).
std::unique_ptr<stream> tls_stream(std::unique_ptr<stream> inner,
                                   std::shared_ptr<const tls_context> context, tls_end end,
                                   std::uint64_t records_of_a_key = std::uint64_t{1} << 23);

}  // namespace deft::detail
