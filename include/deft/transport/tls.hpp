// SPDX-License-Identifier: Apache-2.0
// deft/transport/tls.hpp: TLS 1.3 over another stream; both ends show a certificate. Internal.
//
// A certificate says what it is for as URIs among its alternative names: deft:/job:worker/task:1,
// deft:/job:worker/task:* or deft:/client. TLS checks that the authority has signed it, the
// handshake of deft that it fits the name that the peer gives (certificate_fits).
#pragma once
#include <cstdint>
#include <deft/transport/credentials.hpp>
#include <deft/transport/stream.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace deft::detail {

/// Certificate, key and authority of a process, loaded once and shared by its connections.
class tls_context;

/// Of process `name`; null if the credentials have no certificate, key and authority.
/// Throws invalid_argument if one of the three is missing, is not what it should be, or does not
/// fit the others or `name`; not_found if a file cannot be read; permission_denied if others than
/// its owner have access to the key.
std::shared_ptr<const tls_context> make_tls_context(const credentials& c, std::string_view name);

enum class tls_end { caller, server };

/// TLS over `inner`. Its handshake goes on whenever something is read, written or waited for, and
/// until it is done there is nothing to read and no room to write. A peer that does not fit is told
/// so, and becomes the stream's fault(). Keys are replaced after `records_of_a_key` records of 16
/// KB: AES-GCM is good for 2^24.5 (RFC 8446, 5.5).
std::unique_ptr<stream> tls_stream(std::unique_ptr<stream> inner,
                                   std::shared_ptr<const tls_context> context, tls_end end,
                                   std::uint64_t records_of_a_key = std::uint64_t{1} << 23);

/// Whether a certificate for `uses` is one of a process that calls itself `name`.
bool certificate_fits(const std::vector<std::string>& uses, std::string_view name);
/// "deft:/job:ps/task:0, deft:/client" for messages.
std::string text_of_uses(const std::vector<std::string>& uses);

}  // namespace deft::detail
