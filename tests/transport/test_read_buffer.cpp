// SPDX-License-Identifier: Apache-2.0
#include <deft/transport/read_buffer.hpp>
// its own header comes first, to check that it is self-contained
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include "testing.hpp"

using deft::detail::read_buffer;

namespace {

void fill(read_buffer& b, std::string_view text) {
  const auto space = b.space();
  REQUIRE(space.size() >= text.size());
  std::memcpy(space.data(), text.data(), text.size());
  b.add(text.size());
}
std::string taken(read_buffer& b, std::size_t most) {
  std::string text(most, ' ');
  text.resize(b.take(text.data(), most));
  return text;
}

}  // namespace

TEST_CASE("a read buffer is a queue of bytes") {
  read_buffer b;
  CHECK(b.size() == 0);
  CHECK(taken(b, 5).empty());
  CHECK(b.space().size() == read_buffer::capacity);
  fill(b, "one two");
  CHECK(taken(b, 4) == "one ");
  b.rest();
  CHECK(b.size() == 3);
  CHECK(b.space().size() == read_buffer::capacity - 3);  // the rest moved to the front
  fill(b, " three");
  CHECK(taken(b, 100) == "two three");
}

TEST_CASE("an empty read buffer leaves its memory to the next one that is filled") {
  read_buffer a, b;
  const auto* memory = a.space().data();
  a.rest();
  CHECK(b.space().data() == memory);
  fill(b, "kept");
  b.rest();
  CHECK(a.space().data() != memory);
  a.rest();
  CHECK(taken(b, 100) == "kept");
}

TEST_CASE("a read buffer may be filled and emptied by different threads, and outlive them") {
  read_buffer b;
  std::thread([&] { fill(b, "from there"); }).join();
  CHECK(taken(b, 100) == "from there");
  std::thread([&] { b.rest(); }).join();
  fill(b, "from here");
  std::thread([&] { CHECK(taken(b, 100) == "from here"); }).join();
}
