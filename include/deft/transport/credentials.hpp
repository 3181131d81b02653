// SPDX-License-Identifier: Apache-2.0
// deft/transport/credentials.hpp: by what the processes of a cluster trust each other.
#pragma once
#include <cstddef>
#include <string>

namespace deft {

/// Of a server, or of a session's client. What is not given is of_environment()'s.
struct credentials {
  /// Shared by all tasks and their clients, each of which proves that it knows it. It never
  /// travels. Empty: the environment's DEFT_SECRET.
  std::string secret = {};
  /// For TLS 1.3 on all connections: PEM files of this process's certificate (and those between it
  /// and the authority's), of its private key, and of the authority that has signed all tasks' and
  /// clients' certificates; see scripts/make_certificates. All three or none. Empty: the
  /// environment's DEFT_TLS_CERT, DEFT_TLS_KEY and DEFT_TLS_CA.
  std::string certificate = {}, key = {}, authority = {};
  bool insecure = false;  ///< serve another address than loopback without a secret and without TLS

  /// With what the environment has of DEFT_SECRET, DEFT_TLS_CERT, DEFT_TLS_KEY and DEFT_TLS_CA.
  static credentials of_environment();
  /// With the secret in a file, without the line's end. Throws not_found or invalid_argument;
  /// permission_denied if others than the file's owner have access to it.
  static credentials from_secret_file(const std::string& path);

  /// These, completed by of_environment().
  credentials or_of_environment() const;
  /// Whether TLS is asked for.
  bool has_tls() const { return !certificate.empty() || !key.empty() || !authority.empty(); }
};

namespace detail {
/// What is in a file of credentials, `what` of them for messages. Throws not_found;
/// invalid_argument if it has more than `most` bytes; and where it `is_private` permission_denied,
/// as ssh does, if others than its owner have access to it: they may know it already.
std::string read_credential(const std::string& path, const std::string& what, std::size_t most,
                            bool is_private);
}  // namespace detail

}  // namespace deft
