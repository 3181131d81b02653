// SPDX-License-Identifier: Apache-2.0
// tests/certificates.hpp: an authority of a test's own, and the certificates that it signs.
#pragma once
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstdio>
#include <deft/core/text.hpp>
#include <deft/transport/credentials.hpp>
#include <memory>
#include <string>
#include <vector>

#include "data/temporary_folder.hpp"
#include "testing.hpp"

namespace testing {

/// Has a folder for its files, as long as it lives.
class certificate_authority {
 public:
  /// From when and until when a certificate is valid, in seconds from now.
  struct validity {
    long from = -3600, until = 3600;
  };
  using uses = std::vector<std::string>;

  certificate_authority()
      : key_(new_key()), certificate_(sign(new_name(), {}, {}, key_.get(), nullptr)) {
    write(path("authority.crt"), [&](std::FILE* f) { PEM_write_X509(f, certificate_.get()); });
  }

  /// The files `name`.crt and `name`.key, for "deft:/client" and the like.
  deft::credentials issue(const std::string& name, const uses& for_what, validity when) const {
    const auto key = new_key();
    const auto made = sign(name, for_what, when, key.get(), certificate_.get());
    write(path(name + ".crt"), [&](std::FILE* f) { PEM_write_X509(f, made.get()); });
    write(path(name + ".key"), [&](std::FILE* f) {
      PEM_write_PrivateKey(f, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    return {.certificate = path(name + ".crt"),
            .key = path(name + ".key"),
            .authority = path("authority.crt")};
  }
  deft::credentials issue(const std::string& name, const uses& for_what) const {
    return issue(name, for_what, {});
  }
  std::string path(const std::string& file) const { return folder_ / file; }

 private:
  template <class T, void (*free)(T*)>
  struct freed {
    void operator()(T* p) const { free(p); }
  };
  using key_pointer = std::unique_ptr<EVP_PKEY, freed<EVP_PKEY, EVP_PKEY_free>>;
  using certificate_pointer = std::unique_ptr<X509, freed<X509, X509_free>>;

  static std::string new_name() {
    static int made = 0;
    return deft::ext::str("authority ", ++made);
  }
  static key_pointer new_key() { return key_pointer(EVP_EC_gen("P-256")); }
  template <class F>
  static void write(const std::string& path, F f) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    REQUIRE(file);
    ::fchmod(fileno(file), 0600);
    f(file);
    std::fclose(file);
  }
  static void extend(X509* certificate, int what, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    auto* extension = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
    REQUIRE(extension);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  /// Without an issuer, the authority's own.
  certificate_pointer sign(const std::string& name, const uses& for_what, validity when,
                           EVP_PKEY* key, X509* issuer) const {
    certificate_pointer made(X509_new());
    static long serial = 0;
    X509_set_version(made.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), when.from);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), when.until);
    X509_set_pubkey(made.get(), key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    const bool own = issuer == nullptr;
    X509_set_issuer_name(made.get(), X509_get_subject_name(own ? made.get() : issuer));
    extend(made.get(), NID_basic_constraints, own ? "critical,CA:TRUE" : "critical,CA:FALSE");
    uses uris;
    for (const auto& use : for_what) uris.push_back("URI:" + use);
    if (!uris.empty()) extend(made.get(), NID_subject_alt_name, deft::ext::join(uris, ","));
    REQUIRE(X509_sign(made.get(), own ? key : key_.get(), EVP_sha256()) > 0);
    return made;
  }

  const temporary_folder folder_;
  const key_pointer key_;
  const certificate_pointer certificate_;
};

}  // namespace testing
