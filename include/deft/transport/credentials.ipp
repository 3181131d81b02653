// SPDX-License-Identifier: Apache-2.0
// deft/transport/credentials.ipp: secrets from files and from the environment.
#pragma once
#include <openssl/crypto.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <deft/core/error.hpp>
#include <deft/core/text.hpp>
#include <deft/transport/credentials.hpp>
#include <memory>

namespace deft {
namespace {

/// Throws permission_denied as ssh does: such a secret may be known to others already.
void check_is_private(std::FILE* f, const std::string& path) {
  struct stat about {};
  if (fstat(fileno(f), &about) != 0)
    fail(errc::not_found, "cannot read the secret file \"", path, "\"");
  if ((about.st_mode & 077) == 0) return;
  char mode[16];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(about.st_mode & 07777));
  fail(errc::permission_denied, "others than its owner have access to the secret file \"", path,
       "\" (mode ", std::string(mode), "): run chmod 600 ", path);
}

}  // namespace

credentials credentials::of_environment() {
  const char* secret = std::getenv("DEFT_SECRET");
  return {.secret = secret ? secret : ""};
}

credentials credentials::from_secret_file(const std::string& path) {
  auto close = [](std::FILE* f) { std::fclose(f); };
  std::unique_ptr<std::FILE, decltype(close)> f(std::fopen(path.c_str(), "re"));
  if (!f) fail(errc::not_found, "cannot read the secret file \"", path, "\"");
  check_is_private(f.get(), path);
  char text[4097];
  std::size_t n = std::fread(text, 1, sizeof text, f.get());
  if (n == sizeof text)
    fail(errc::invalid_argument, "the secret file \"", path, "\" has more than 4096 bytes");
  credentials made{.secret = std::string(text, n)};
  OPENSSL_cleanse(text, sizeof text);
  std::string& secret = made.secret;
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.empty()) fail(errc::invalid_argument, "the secret file \"", path, "\" is empty");
  return made;
}

credentials credentials::or_of_environment() const {
  credentials all = *this;
  if (all.secret.empty()) all.secret = of_environment().secret;
  return all;
}

}  // namespace deft
