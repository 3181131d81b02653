// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <deft/core/error.hpp>
#include <deft/core/growing_block.hpp>
#include <deft/core/host_mapping.hpp>
#include <vector>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {
constexpr std::size_t mb = std::size_t{1} << 20;

/// The limit while it lives.
struct memory_limit {
  explicit memory_limit(std::size_t bytes) {
    trim_host_memory();
    set_host_memory_limit(bytes);
  }
  ~memory_limit() {
    trim_host_memory();
    set_host_memory_limit(0);
  }
};
}  // namespace

TEST_CASE("a growing block is filled at its final address, and then is a block like others") {
  trim_host_memory();
  growing_block g(5 * mb);
  CHECK(g.claimed() == 0);
  std::byte* const at = g.data();
  CHECK(reinterpret_cast<std::uintptr_t>(at) % (2 * mb) == 0);
  for (std::size_t n : {mb, 3 * mb, 5 * mb}) {
    g.claim(n);
    CHECK(g.claimed() >= n);
    std::memset(at, 0x5a, g.claimed());
  }
  CHECK(g.claimed() == 6 * mb);
  buffer b = g.take();
  CHECK(g.data() == nullptr);
  CHECK(b.data() == at);
  CHECK(b.capacity() == 6 * mb);
  CHECK(b.unique());
  CHECK(b.home() == &host_memory());
  CHECK(find_host_mapping(at + 5 * mb).bytes == 6 * mb);
  b.reset();
  CHECK(recycled_host_memory() == 6 * mb);
  growing_block again(5 * mb);  // needs no claims
  CHECK(again.data() == at);
  CHECK(again.claimed() == 6 * mb);
  again = growing_block();
  CHECK(recycled_host_memory() == 6 * mb);
  trim_host_memory();
}

TEST_CASE("what is only reserved does not count toward the limit") {
  const memory_limit limit(256 * mb);
  std::vector<growing_block> announced;
  for (int i = 0; i < 60; ++i) announced.emplace_back(200 * mb);
  { const buffer honest = buffer::host(200 * mb); }
  trim_host_memory();
  for (auto& a : announced) a.claim(2 * mb);  // 120 MB in all
  { const buffer honest = buffer::host(100 * mb); }
  CHECK(testing::error_of([] { buffer::host(200 * mb); }).starts_with("resource_exhausted"));
  announced.clear();
  CHECK(testing::error_of([] { buffer::host(256 * mb); }) == "");
  CHECK(testing::error_of([] {
          growing_block(300 * mb);
        }).starts_with("resource_exhausted: cannot allocate 314572800 bytes"));
}

TEST_CASE("a large block that grows leaves some memory for others") {
  const memory_limit limit(256 * mb);
  growing_block large(256 * mb), small(64 * mb);
  large.claim(192 * mb);
  small.claim(32 * mb);
  CHECK(testing::error_of([&] { large.claim(224 * mb); }).starts_with("resource_exhausted"));
  CHECK(large.claimed() == 0);  // it gave back what it had
  small.claim(64 * mb);
  CHECK(small.claimed() == 64 * mb);
}
