// SPDX-License-Identifier: Apache-2.0
// tests/transport/tls_cluster.hpp: certificates of a cluster whose tasks are ps/0 and the workers.
#pragma once
#include <deft/transport/tls.hpp>
#include <string>

#include "certificates.hpp"
#include "wire.hpp"

namespace testing {

inline const std::string server_name = "/job:ps/replica:0/task:0";

/// Created once.
inline const certificate_authority& authority() {
  static const certificate_authority a;
  return a;
}
inline const credentials& of_server() {
  static const auto c = authority().issue("server", {"deft:/job:ps/task:0"});
  return c;
}
inline const credentials& of_client() {
  static const auto c = authority().issue("client", {"deft:/client"});
  return c;
}

inline listen_options server_of(const credentials& c) {
  listen_options o = options_of_test();
  o.self.credentials = c;
  return o;
}
inline channel_options client_of(const credentials& c) {
  channel_options o;
  o.self.credentials = c;
  return o;
}

/// The streams of a caller and of a server over two sockets, before the TLS handshake.
struct tls_streams {
  std::unique_ptr<detail::stream> caller, server;
  tls_streams(std::unique_ptr<detail::stream> from_caller,
              std::unique_ptr<detail::stream> from_server,
              std::uint64_t records_of_a_key = std::uint64_t{1} << 23)
      : caller(detail::tls_stream(std::move(from_caller),
                                  detail::make_tls_context(of_client(), "client"),
                                  detail::tls_end::caller, records_of_a_key)),
        server(detail::tls_stream(std::move(from_server),
                                  detail::make_tls_context(of_server(), server_name),
                                  detail::tls_end::server, records_of_a_key)) {}
};

}  // namespace testing
