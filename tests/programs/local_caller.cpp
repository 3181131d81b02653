// SPDX-License-Identifier: Apache-2.0
// tests/programs/local_caller.cpp ADDRESS: calls a server with 64 MB, over and over, until it is
// killed. Each call is under way while the one before is answered.
#include <deft/transport/channel_group.hpp>

int main(int, char** argv) {
  using namespace deft;
  using namespace deft::ext;
  channel_group h;
  const auto c = h.connect(argv[1], deadline_in(std::chrono::seconds(60)));
  message m(message_kind::first_free);
  m.flags = c->peer().local;
  m.tensors = {any_array(dtype::uint8, dims{64 << 20})};
  auto before = c->call(m);
  for (;;) {
    auto p = c->call(m);
    h.wait_for(*before);
    before = std::move(p);
  }
}
