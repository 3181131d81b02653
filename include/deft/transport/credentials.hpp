// SPDX-License-Identifier: Apache-2.0
// deft/transport/credentials.hpp: the secret and the certificates of a cluster's processes.
#pragma once
#include <cstddef>
#include <deft/core/config.hpp>
#include <string>

namespace deft {

/// The credentials of a server, or of a session's client. Empty members are taken from the
/// environment.
struct credentials {
  /// Shared by all tasks and their clients, each of which proves that it knows it; never sent.
  /// Empty: DEFT_SECRET of the environment.
  std::string secret = {};
  /// For TLS 1.3 on all connections: PEM files of this process's certificate (and its chain up to
  /// the authority), of its private key, and of the authority that signed the certificates of all
  /// tasks and clients; see scripts/make_certificates. Give all three or none. Empty:
  /// DEFT_TLS_CERT, DEFT_TLS_KEY and DEFT_TLS_CA of the environment.
  /// @{
  std::string certificate = {}, key = {}, authority = {};
  /// @}
  bool insecure = false;  ///< allow an address other than loopback without a secret and without TLS

  /// The values of DEFT_SECRET, DEFT_TLS_CERT, DEFT_TLS_KEY and DEFT_TLS_CA in the environment.
  static credentials of_environment();
  /// Reads the secret from a file, without the end of line. Throws not_found if it cannot be read,
  /// invalid_argument if it is empty or longer than 4,096 bytes, permission_denied if anyone but
  /// its owner has access to it.
  static credentials from_secret_file(const std::string& path);

  /// A copy in which empty members are those of of_environment().
  credentials or_of_environment() const;
  /// Whether any of the files for TLS is given.
  bool has_tls() const { return !certificate.empty() || !key.empty() || !authority.empty(); }
};

namespace detail {
/// The contents of a file of credentials; `what` names it in messages. Throws not_found if it
/// cannot be read, invalid_argument if it has more than `most` bytes, and, if it `is_private`,
/// permission_denied if anyone but its owner has access to it, as ssh does.
std::string read_credential(const std::string& path, const std::string& what, std::size_t most,
                            bool is_private);
}  // namespace detail

}  // namespace deft
