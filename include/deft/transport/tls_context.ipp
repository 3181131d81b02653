// SPDX-License-Identifier: Apache-2.0
// deft/transport/tls_context.ipp: reading PEM files, and the names in certificates.
#pragma once
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <boost/asio/ssl/context.hpp>
#include <deft/core/error.hpp>
#include <deft/device/name.hpp>
#include <deft/transport/tls_context.hpp>

namespace deft::detail {

std::vector<std::string> uses_of(X509* certificate) {
  std::vector<std::string> uses;
  auto free = [](GENERAL_NAMES* n) { GENERAL_NAMES_free(n); };
  const std::unique_ptr<GENERAL_NAMES, decltype(free)> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    std::string text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                     static_cast<std::size_t>(ASN1_STRING_length(uri)));
    const bool shows =
        std::all_of(text.begin(), text.end(), [](char c) { return c > 32 && c < 127; });
    if (shows && text.starts_with("deft:/") && text.size() <= 256) uses.push_back(std::move(text));
  }
  return uses;
}

std::string text_of_uses(const std::vector<std::string>& uses) {
  return uses.empty() ? "no task and no client" : join(uses, ", ");
}

bool certificate_fits(const std::vector<std::string>& uses, std::string_view name) {
  std::string exact = str("deft:/", name), any;
  if (name.starts_with("/")) {
    try {
      const device_name task = parse_device(name);
      if (task.job.empty() || !task.task || task.replica.value_or(0) != 0 || !task.type.empty())
        return false;
      any = str("deft:/job:", task.job, "/task:*");
      exact = str("deft:/job:", task.job, "/task:", *task.task);
    } catch (const error&) {
      return false;
    }
  }
  return std::any_of(uses.begin(), uses.end(), [&](const std::string& use) {
    return use == exact || (!any.empty() && use == any);
  });
}

struct tls_context::loaded {
  boost::asio::ssl::context context{boost::asio::ssl::context::tlsv13};
};

namespace {

void need(const std::string& path, const char* what, const char* how) {
  if (path.empty())
    fail(errc::invalid_argument, "TLS needs a certificate, its key and an authority: there is no ",
         what, "; set ", how);
}

}  // namespace

tls_context::tls_context(const credentials& c, std::string_view name)
    : files_(c), loaded_(std::make_unique<loaded>()) {
  constexpr std::size_t file_at_most = 1024 * 1024;
  constexpr std::size_t read_ahead_bytes = 64 * 1024;  // of ciphertext
  boost::asio::ssl::context& context = loaded_->context;
  SSL_CTX* const handle = context.native_handle();
  need(c.certificate, "certificate", "--tls_cert or DEFT_TLS_CERT");
  need(c.key, "key", "--tls_key or DEFT_TLS_KEY");
  need(c.authority, "authority", "--tls_ca or DEFT_TLS_CA");
  boost::system::error_code failed;
  auto check = [&](const auto&... sentence) {
    if (failed) fail(errc::invalid_argument, sentence..., ": ", failed.message());
  };
  using boost::asio::buffer;
  const auto pem = boost::asio::ssl::context::pem;
  // Never asks for a password at the terminal.
  context.set_password_callback([](auto&&...) { return std::string(); }, failed);

  const auto certificate = read_credential(c.certificate, "certificate", file_at_most, false);
  context.use_certificate_chain(buffer(certificate), failed);
  check("the certificate \"", c.certificate, "\" is not in PEM format");
  const auto uses = uses_of(SSL_CTX_get0_certificate(handle));
  if (!certificate_fits(uses, name))
    fail(errc::invalid_argument, "the certificate \"", c.certificate, "\" is for ",
         text_of_uses(uses), ", not for ", name);

  auto key = read_credential(c.key, "key", file_at_most, true);
  context.use_private_key(buffer(key), pem, failed);
  OPENSSL_cleanse(key.data(), key.size());
  const auto reason = static_cast<unsigned long>(failed.value());
  if (ERR_GET_LIB(reason) == ERR_LIB_X509 && ERR_GET_REASON(reason) == X509_R_KEY_VALUES_MISMATCH)
    fail(errc::invalid_argument, "the key \"", c.key, "\" does not belong to the certificate \"",
         c.certificate, "\"");
  check("the key \"", c.key, "\" is not in PEM format, or has a password");

  const auto authority = read_credential(c.authority, "authority", file_at_most, false);
  context.add_certificate_authority(buffer(authority), failed);
  if (!failed && sk_X509_OBJECT_num(X509_STORE_get0_objects(SSL_CTX_get_cert_store(handle))) == 0)
    failed = boost::asio::error::invalid_argument;
  check("the authority \"", c.authority, "\" is not a certificate in PEM format");

  SSL_CTX_set_verify(handle, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // As strong in practice as OpenSSL's first choice, and faster.
  SSL_CTX_set_ciphersuites(
      handle, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  // Sessions are never resumed.
  SSL_CTX_set_session_cache_mode(handle, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(handle, 0);
  SSL_CTX_set_read_ahead(handle, 1);
  SSL_CTX_set_default_read_buffer_len(handle, read_ahead_bytes);
}

tls_context::~tls_context() = default;

SSL_CTX* tls_context::handle() const { return loaded_->context.native_handle(); }

std::shared_ptr<const tls_context> make_tls_context(const credentials& c, std::string_view name) {
  if (!c.has_tls()) return nullptr;
  // Connections may outlive main's statics, with which OpenSSL would clean up.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  return std::make_shared<tls_context>(c, name);
}

}  // namespace deft::detail
