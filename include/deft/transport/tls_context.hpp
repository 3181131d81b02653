// SPDX-License-Identifier: Apache-2.0
// deft/transport/tls_context.hpp: a process's certificate, and the names in certificates. Internal.
//
// A certificate names the processes that it is for by URIs among its subject alternative names:
// deft:/job:worker/task:1, deft:/job:worker/task:* or deft:/client.
#pragma once
#include <deft/transport/credentials.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct ssl_ctx_st;  // OpenSSL's SSL_CTX
struct x509_st;     // and X509

namespace deft::detail {

/// Certificate, key and authority of a process, loaded once and shared by its connections.
class tls_context {
 public:
  /// See make_tls_context.
  tls_context(const credentials& c, std::string_view name);
  ~tls_context();
  tls_context(const tls_context&) = delete;

  ssl_ctx_st* handle() const;
  const credentials& files() const { return files_; }

 private:
  struct loaded;
  const credentials files_;
  const std::unique_ptr<loaded> loaded_;
};

/// Loads the files of process `name`; null if the credentials have none. Throws invalid_argument if
/// the certificate, key or authority is missing or malformed, or does not match the others or
/// `name`; not_found if a file cannot be read; permission_denied if anyone but its owner has access
/// to the key.
std::shared_ptr<const tls_context> make_tls_context(const credentials& c, std::string_view name);

/// The URIs in a certificate that begin with "deft:/".
std::vector<std::string> uses_of(x509_st* certificate);
/// The uses in messages: "deft:/job:ps/task:0, deft:/client".
std::string text_of_uses(const std::vector<std::string>& uses);
/// Whether a certificate for `uses` is valid for the process `name`.
bool certificate_fits(const std::vector<std::string>& uses, std::string_view name);

}  // namespace deft::detail
