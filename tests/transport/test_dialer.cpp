// SPDX-License-Identifier: Apache-2.0
#include <deft/transport/dialer.hpp>

#include <deft/core/failure.hpp>

#include "hosts.hpp"
#include "wire.hpp"

using namespace testing;

namespace {

/// A server on 127.0.0.1, and what others with its port do.
struct second_address {
  test_handler handler;
  listener server{options_of_test(), handler};
  std::string port = str(":", server.port());
  known_hosts hosts{{{"two.example", {"127.0.0.2", "127.0.0.1"}},
                     {"three.example", {"127.0.0.3", "127.0.0.2", "127.0.0.1"}}}};
  channel_group group{client_of_test()};

  /// Connects to a host with that port.
  std::string reached(const std::string& host) {
    return group.connect(host + port, soon())->peer().name;
  }
};

/// An address that answers nothing, as if packets to it were dropped: its queue is full.
class silent_address {
 public:
  explicit silent_address(const std::string& address)
      : listening_(socket(AF_INET, SOCK_STREAM, 0)) {
    const auto at = detail::resolve(address).front();
    const int yes = 1;
    setsockopt(listening_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    REQUIRE(::bind(listening_, at.data(), static_cast<socklen_t>(at.size())) == 0);
    REQUIRE(::listen(listening_, 0) == 0);
    queued_.push_back(std::make_unique<bare_socket>(address));
  }
  ~silent_address() { ::close(listening_); }
  silent_address(const silent_address&) = delete;

 private:
  int listening_;
  std::vector<std::unique_ptr<bare_socket>> queued_;
};

}  // namespace

TEST_CASE("an address that drops packets does not hide the next one of its name") {
  second_address s;
  const silent_address drops("127.0.0.2" + s.port);
  CHECK(s.reached("two.example") == options_of_test().self.name);
  // Also if a dial ends sooner than the first address is given up: each has its turn.
  std::shared_ptr<channel> c;
  while (!c)
    (void)failure_of([&] {
      c = s.group.connect("two.example" + s.port, deadline_in(std::chrono::milliseconds(200)));
    });
  CHECK(c->peer().name == options_of_test().self.name);
}

TEST_CASE("an address that refuses, or accepts and says nothing, does not hide the next one") {
  second_address s;
  CHECK(s.reached("two.example") == options_of_test().self.name);
  const int mute = listen_socket("127.0.0.2" + s.port);
  CHECK(s.reached("two.example") == options_of_test().self.name);
  CHECK(s.reached("three.example") == options_of_test().self.name);
  ::close(mute);
}

TEST_CASE("an address is tried again while another one of its name does not answer") {
  std::string address;
  {
    test_handler unused;
    address = listener(options_of_test(), unused).address();
  }
  const std::string port = address.substr(address.rfind(':'));
  const known_hosts hosts({{"two.example", {"127.0.0.2", "127.0.0.1"}}});
  const silent_address drops("127.0.0.2" + port);
  channel_group group(client_of_test());
  std::string name;
  captured_log log;
  std::thread caller([&] { name = group.connect("two.example" + port, soon())->peer().name; });
  CHECK(log.wait_for("still trying") == str("still trying to connect to two.example", port,
                                            ": 127.0.0.1", port, ": Connection refused"));
  test_handler handler;
  auto o = options_of_test();
  o.address = address;
  const listener late(o, handler);
  caller.join();
  CHECK(name == o.self.name);
}
