// SPDX-License-Identifier: Apache-2.0
// deft/transport/credentials.hpp: by what the processes of a cluster trust each other.
#pragma once
#include <string>

namespace deft {

/// Of a server, or of a session's client. What is not given is of_environment()'s.
struct credentials {
  /// Shared by all tasks and their clients, each of which proves that it knows it. It never
  /// travels. Empty: the environment's DEFT_SECRET.
  std::string secret = {};
  bool insecure = false;  ///< serve another address than loopback without a secret

  /// With the environment's DEFT_SECRET, if there is one.
  static credentials of_environment();
  /// With the secret in a file, without the line's end. Throws not_found or invalid_argument;
  /// permission_denied if others than the file's owner have access to it.
  static credentials from_secret_file(const std::string& path);

  /// These, completed by of_environment().
  credentials or_of_environment() const;
};

}  // namespace deft
