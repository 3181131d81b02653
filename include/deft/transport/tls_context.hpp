// SPDX-License-Identifier: Apache-2.0
// deft/transport/tls_context.hpp: a process's certificate, and what certificates say. Internal.
//
// A certificate says what it is for as URIs among its alternative names: deft:/job:worker/task:1,
// deft:/job:worker/task:* or deft:/client.
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
  /// As make_tls_context.
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

/// Of process `name`; null if the credentials have no certificate, key and authority.
/// Throws invalid_argument if one of the three is missing, is not what it should be, or does not
/// fit the others or `name`; not_found if a file cannot be read; permission_denied if others than
/// its owner have access to the key.
std::shared_ptr<const tls_context> make_tls_context(const credentials& c, std::string_view name);

/// The URIs of deft in a certificate.
std::vector<std::string> uses_of(x509_st* certificate);
/// "deft:/job:ps/task:0, deft:/client" for messages.
std::string text_of_uses(const std::vector<std::string>& uses);
/// Whether a certificate for `uses` is one of a process that calls itself `name`.
bool certificate_fits(const std::vector<std::string>& uses, std::string_view name);

}  // namespace deft::detail
