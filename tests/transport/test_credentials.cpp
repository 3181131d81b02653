// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <deft/transport/credentials.hpp>
#include <filesystem>

#include "environment.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::environment;
using testing::error_of;

namespace {

/// A file with a secret, removed by the destructor.
struct secret_file {
  explicit secret_file(const std::string& text, mode_t mode = 0600) {
    const int fd = mkstemp(path.data());
    REQUIRE(fd >= 0);
    REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    REQUIRE(fchmod(fd, mode) == 0);
    ::close(fd);
  }
  ~secret_file() { std::remove(path.c_str()); }
  secret_file(const secret_file&) = delete;

  std::string path = (std::filesystem::temp_directory_path() / "deft_secret_XXXXXX").string();
};

}  // namespace

TEST_CASE("a secret is read from a file, without the end of line") {
  const secret_file line("hush\n"), bare("hush"), read_only("hush\r\n", 0400);
  for (const auto* f : {&line, &bare, &read_only})
    CHECK(credentials::from_secret_file(f->path).secret == "hush");
  const secret_file empty("\n"), large(std::string(4'097, 'x'));
  for (const auto* f : {&empty, &large})
    CHECK(
        error_of([&] { credentials::from_secret_file(f->path); }).starts_with("invalid_argument"));
  CHECK(error_of([] { credentials::from_secret_file("/no/such/file"); }) ==
        "not_found: cannot read the secret file \"/no/such/file\": No such file or directory");
}

TEST_CASE("a secret file that other users have access to is refused, with what to do") {
  for (const mode_t mode : {0644, 0640, 0620, 0601, 0660}) {
    const secret_file f("hush", mode);
    char octal[8];
    std::snprintf(octal, sizeof octal, "0%o", static_cast<unsigned>(mode));
    CHECK(error_of([&] { credentials::from_secret_file(f.path); }) ==
          str("permission_denied: users other than the owner have access to the secret file \"",
              f.path, "\" (mode ", std::string(octal), "): run chmod 600 ", f.path));
  }
}

TEST_CASE("files for TLS default to the environment's") {
  const environment certificate("DEFT_TLS_CERT", "a.crt"), key("DEFT_TLS_KEY", "a.key"),
      authority("DEFT_TLS_CA", "ca.crt");
  const auto all = credentials().or_of_environment();
  CHECK(all.certificate == "a.crt");
  CHECK(all.key == "a.key");
  CHECK(all.authority == "ca.crt");
  CHECK(all.has_tls());
  CHECK_FALSE(credentials().has_tls());
  const auto own = credentials{.certificate = "b.crt", .key = "b.key"}.or_of_environment();
  CHECK(own.certificate == "b.crt");
  CHECK(own.key == "b.key");
  CHECK(own.authority == "ca.crt");
}

TEST_CASE("the secret defaults to the environment's") {
  {
    const environment given("DEFT_SECRET", "quiet");
    CHECK(credentials::of_environment().secret == "quiet");
    CHECK_FALSE(credentials::of_environment().insecure);
    CHECK(credentials().or_of_environment().secret == "quiet");
    CHECK(credentials{.secret = "own"}.or_of_environment().secret == "own");
    CHECK(credentials{.insecure = true}.or_of_environment().insecure);
  }
  const environment none("DEFT_SECRET", nullptr);
  CHECK(credentials::of_environment().secret.empty());
}
