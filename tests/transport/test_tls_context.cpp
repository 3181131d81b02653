// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <deft/transport/tls_context.hpp>

#include "tls_cluster.hpp"

using namespace testing;

TEST_CASE("a certificate fits the tasks that it names, and no others") {
  auto fits = [](const char* use, const char* name) {
    return detail::certificate_fits({"deft:/other", use}, name);
  };
  CHECK(fits("deft:/client", "client"));
  CHECK(fits("deft:/job:ps/task:0", "/job:ps/replica:0/task:0"));
  CHECK(fits("deft:/job:ps/task:0", "/job:ps/task:0"));
  CHECK(fits("deft:/job:ps/task:*", "/job:ps/replica:0/task:17"));
  const std::pair<const char*, const char*> others[] = {
      {"deft:/client", "/job:ps/task:0"},
      {"deft:/client", "clients"},
      {"deft:/job:ps/task:0", "client"},
      {"deft:/job:ps/task:0", "/job:ps/replica:0/task:1"},
      {"deft:/job:ps/task:1", "/job:ps/replica:0/task:11"},
      {"deft:/job:ps/task:0", "/job:worker/replica:0/task:0"},
      {"deft:/job:ps/task:0", "/job:ps/replica:1/task:0"},
      {"deft:/job:ps/task:*", "/job:worker/replica:0/task:0"},
      {"deft:/job:ps/task:*", "/job:ps"},
      {"deft:/job:ps/task:*", "/job:ps/task:*"},
      {"deft:/job:ps/task:*", "/job:ps/task:0/cpu:0"},
      {"deft:/job:*/task:*", "/job:ps/replica:0/task:0"},
      {"deft:/job:ps/task:*", "/job:ps/task:x"},
      {"http://client", "client"},
      {"deft:/", ""},
  };
  for (const auto& other : others) {
    const char *use = other.first, *name = other.second;
    CAPTURE(use);
    CAPTURE(name);
    CHECK(fits(use, name) == (*name == 0));
  }
  CHECK(!detail::certificate_fits({}, "client"));
}

TEST_CASE("invalid files for TLS are named, before anything is listened on or called") {
  test_handler handler;
  const auto good = of_client();
  auto refused = [&](auto change) {
    auto c = good;
    change(c);
    const auto of_hub = error_of([&] { channel_group h(client_of(c)); });
    auto o = server_of(c);
    o.self.name = "client";
    CHECK(error_of([&] { listener(o, handler); }) == of_hub);
    return of_hub;
  };
  auto file = [&](const std::string& text, mode_t mode = 0600) {
    static int made = 0;
    const auto path = authority().path(str("file", ++made));
    write_bytes(path, text);
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    return path;
  };
  const std::string missing =
      "invalid_argument: TLS needs a certificate, its key and an "
      "authority: there is no ";
  CHECK(refused([](credentials& c) { c.certificate.clear(); }) ==
        missing + "certificate; set --tls_cert or DEFT_TLS_CERT");
  CHECK(refused([](credentials& c) { c.key.clear(); }) ==
        missing + "key; set --tls_key or DEFT_TLS_KEY");
  CHECK(refused([](credentials& c) { c.authority.clear(); }) ==
        missing + "authority; set --tls_ca or DEFT_TLS_CA");
  CHECK(refused([](credentials& c) { c.certificate = "/no/such/file"; }) ==
        "not_found: cannot read the certificate \"/no/such/file\": No such file or directory");
  CHECK(refused([](credentials& c) { c.key = "/no/such/file"; }) ==
        "not_found: cannot read the key \"/no/such/file\": No such file or directory");
  CHECK(refused([](credentials& c) { c.authority = "/no/such/file"; }) ==
        "not_found: cannot read the authority \"/no/such/file\": No such file or directory");
  const auto text = file("no certificate, no key"), open_key = file(read_bytes(good.key), 0640);
  CHECK(refused([&](credentials& c) {
          c.certificate = text;
        }).starts_with(str("invalid_argument: the certificate \"", text, "\" is not in PEM")));
  CHECK(refused([&](credentials& c) {
          c.key = text;
        }).starts_with(str("invalid_argument: the key \"", text, "\" is not in PEM")));
  CHECK(refused([&](credentials& c) {
          c.authority = text;
        }).starts_with(str("invalid_argument: the authority \"", text, "\" is not")));
  CHECK(refused([&](credentials& c) { c.key = open_key; }) ==
        str("permission_denied: users other than the owner have access to the key \"", open_key,
            "\" (mode 0640): run chmod 600 ", open_key));
  CHECK(refused([&](credentials& c) { c.key = of_server().key; }) ==
        str("invalid_argument: the key \"", of_server().key,
            "\" does not belong to the certificate \"", good.certificate, "\""));
  CHECK(refused([&](credentials& c) { c = of_server(); }) ==
        str("invalid_argument: the certificate \"", of_server().certificate,
            "\" is for deft:/job:ps/task:0, not for client"));
  CHECK(refused([&](credentials& c) { c = authority().issue("nothing", {"http://x"}); }) ==
        str("invalid_argument: the certificate \"", authority().path("nothing.crt"),
            "\" is for no task and no client, not for client"));
}
