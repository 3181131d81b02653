// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzz_handshake.cpp: whatever a caller sends to a server, the server ends the
// connection once the caller has ended its direction, and serves others. An input is what is sent:
// the seeds shake hands, as the server has no secret, and go on with calls.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <deft/core/log.hpp>
#include <deft/deft.hpp>
#include <deft/session/wire/codec.hpp>

#include "frames.hpp"
#include "transport/introduction.hpp"

using namespace deft;
using namespace deft::ext;
using namespace std::chrono_literals;
using fuzzing::bytes;

namespace {

constexpr int patience = 50'000;  // milliseconds

server& served() {
  static server& s = *[] {
    logging::set_level(logging::level::off);
    set_host_memory_limit(std::size_t{256} << 20);
    return new server(server::local());
  }();
  return s;
}

/// False if the time is over.
bool wait_for(int fd, short what) {
  pollfd p{fd, what, 0};
  return ::poll(&p, 1, patience) > 0;
}

/// What the server answers until it hangs up.
bytes answer_to(std::span<const std::byte> from) {
  const std::string& address = served().address();
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    fuzzing::found("the server takes no connection");
  bytes answer;
  bool hung_up = false;
  auto read = [&] {
    std::byte block[4096];
    const auto n = ::recv(fd, block, sizeof block, MSG_DONTWAIT);
    hung_up = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (n > 0) answer.insert(answer.end(), block, block + n);
    return n > 0;
  };
  while (!from.empty() && !hung_up) {
    const auto n = ::send(fd, from.data(), from.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
      from = from.subspan(static_cast<std::size_t>(n));
    else if (errno != EAGAIN)
      break;
    else if (!read() && !wait_for(fd, POLLIN | POLLOUT))
      fuzzing::found("the server neither reads nor hangs up");
  }
  ::shutdown(fd, SHUT_WR);
  while (!hung_up)
    if (!read() && !hung_up && !wait_for(fd, POLLIN)) fuzzing::found("the server does not hang up");
  ::close(fd);
  return answer;
}

/// Another client gets what it asks for.
void check_served() {
  graph g;
  auto in = as_default(g);
  const bool right = fuzzing::accepted([] {
    session s(served().target(), {.fold = false, .timeout = 50s, .connect_timeout = 50s});
    if (s.run(constant(1) + 2) != 3) fuzzing::found("1 + 2 is not 3");
  });
  if (!right) fuzzing::found("another client is not served");
}

bytes shake_hands() {
  message hello(message_kind::hello), proof(message_kind::proof);
  hello.meta = testing::introduction_by_hand{"client"}.meta();
  proof.meta = testing::proof_by_hand({"add/1"});
  bytes b = detail::flatten_frame(hello);
  fuzzing::append(b, detail::flatten_frame(proof));
  return b;
}

bool is_welcome(const bytes& caller) {
  const auto heard = fuzzing::read_frames(answer_to(caller), SIZE_MAX, {}).messages;
  return heard.size() > 1 && heard[1].kind == message_kind::welcome;
}

}  // namespace

std::vector<bytes> fuzzing::seeds() {
  std::vector<bytes> all(4, shake_hands());
  std::uint64_t id = 0;
  auto add = [&](bytes& b, message&& m) {
    m.id = ++id;
    append(b, detail::flatten_frame(m));
  };
  add(all[1], wire::pack(wire::devices()));
  add(all[1], wire::pack(wire::open_session()));
  add(all[1], wire::pack(wire::reset{"container"}));
  add(all[1], wire::pack(wire::close_session{1}));
  graph g;
  auto in = as_default(g);
  const any_tensor sum = constant({1.f, 2.f}) + 1.f;
  const output fetched[] = {sum.handle()};
  plan::part p;
  p.task = intern(parse_device("/job:localhost/replica:0/task:0"));
  p.graph = flatten(fetched, {}).graph;
  for (auto& n : p.graph.nodes)
    n.device = intern(parse_device("/job:localhost/replica:0/task:0/cpu:0"));
  p.fetches = {{static_cast<std::uint32_t>(p.graph.nodes.size() - 1), 0}};
  p.fetch_numbers = {0};
  add(all[2], wire::pack(wire::register_part{1, 1, p, {}}));
  add(all[2], wire::pack(wire::run_part{1, 1, 1}));
  add(all[2], wire::pack(wire::cancel_step{1, 1}));
  add(all[2], wire::pack(wire::drop_session{1}));
  add(all[3],
      wire::pack(wire::tensors{1, 1, {0, 1}, {any_array::scalar(1.f), any_array::scalar(2.f)}}));
  add(all[3], message(message_kind::credit));
  add(all[3], message(message_kind::heartbeat));
  add(all[3], wire::pack(wire::devices()));
  // What comes after a handshake that fails would not be tried.
  for (const auto& seed : all)
    if (!is_welcome(seed)) found("a seed is refused");
  return all;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  return fuzzing::mutate_frames(data, 0, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  answer_to(fuzzing::as_bytes(data, size));
  static unsigned runs = 0;
  if (++runs % 500 == 0) check_served();
  return 0;
}
