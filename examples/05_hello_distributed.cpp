// SPDX-License-Identifier: Apache-2.0
// 05_hello_distributed.cpp: a session on a server: the graph is written here, and runs there. The
// server is a cluster of one task, in this process; a session needs nothing but its target.
//
//     session ──── graph, fetches ───▶ /job:localhost/task:0
//             ◀──────── value ──────── hello
//
// prints: Hello, distributed deft!
#include <algorithm>
#include <cstdio>
#include <deft/deft.hpp>
#include <string>

int main() {
  using namespace deft;
  const std::string text = "Hello, distributed deft!";
  ndarray<std::uint8_t, dyn> letters(text.size());
  std::copy(text.begin(), text.end(), letters.begin());
  auto hello = constant(letters);

  server local = server::local();
  session s(local.target());
  ndarray<std::uint8_t, dyn> said = s.run(hello);
  std::printf("%s says: %s\n", local.target().c_str(),
              std::string(said.begin(), said.end()).c_str());
  return said == letters ? 0 : 1;
}
