// SPDX-License-Identifier: Apache-2.0
// deft/transport/credentials.ipp: secrets from files and from the environment.
#pragma once
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <deft/core/error.hpp>
#include <deft/core/text.hpp>
#include <deft/transport/credentials.hpp>
#include <memory>

namespace deft {
namespace detail {

std::string read_credential(const std::string& path, const std::string& what, std::size_t most,
                            bool is_private) {
  auto close = [](std::FILE* f) { std::fclose(f); };
  std::unique_ptr<std::FILE, decltype(close)> f(std::fopen(path.c_str(), "re"));
  struct stat about {};
  if (!f || fstat(fileno(f.get()), &about) != 0)
    fail(errc::not_found, "cannot read the ", what, " \"", path, "\": ", text_of_errno(errno));
  if (is_private && (about.st_mode & 077) != 0) {
    char mode[16];
    std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(about.st_mode & 07777));
    fail(errc::permission_denied, "users other than the owner have access to the ", what, " \"",
         path, "\" (mode ", std::string(mode), "): run chmod 600 ", path);
  }
  std::setvbuf(f.get(), nullptr, _IONBF, 0);  // leaves no copy in a buffer
  std::string text(most + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), f.get()));
  if (std::ferror(f.get()))
    fail(errc::not_found, "cannot read the ", what, " \"", path, "\": ", text_of_errno(errno));
  if (text.size() > most)
    fail(errc::invalid_argument, "the ", what, " \"", path, "\" is larger than ", most, " bytes");
  return text;
}

}  // namespace detail

credentials credentials::of_environment() {
  auto value = [](const char* name) {
    const char* given = std::getenv(name);
    return std::string(given ? given : "");
  };
  return {.secret = value("DEFT_SECRET"),
          .certificate = value("DEFT_TLS_CERT"),
          .key = value("DEFT_TLS_KEY"),
          .authority = value("DEFT_TLS_CA")};
}

credentials credentials::from_secret_file(const std::string& path) {
  credentials made{.secret = detail::read_credential(path, "secret file", 4096, true)};
  std::string& secret = made.secret;
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.empty()) ext::fail(errc::invalid_argument, "the secret file \"", path, "\" is empty");
  return made;
}

credentials credentials::or_of_environment() const {
  credentials all = *this;
  const credentials given = of_environment();
  for (auto member : {&credentials::secret, &credentials::certificate, &credentials::key,
                      &credentials::authority})
    if ((all.*member).empty()) all.*member = given.*member;
  return all;
}

}  // namespace deft
