// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <deft/core/any_array.hpp>
#include <deft/core/buffer.hpp>
#include <deft/core/host_mapping.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {
constexpr std::size_t huge_page = std::size_t{2} << 20;
std::uintptr_t address(const buffer& b) { return reinterpret_cast<std::uintptr_t>(b.data()); }
}  // namespace

TEST_CASE("blocks are aligned to 64 bytes, large ones to 2 MB, and hold the bytes requested") {
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{1000},
                            huge_page - 1, huge_page, huge_page + 1, 3 * huge_page}) {
    CAPTURE(bytes);
    auto b = buffer::host(bytes);
    REQUIRE(b.data() != nullptr);
    CHECK(b.capacity() >= bytes);
    CHECK(address(b) % (bytes < huge_page ? 64 : huge_page) == 0);
    CHECK(b.home() == &host_memory());
    std::memset(b.data(), 0x5a, b.capacity());
  }
}

TEST_CASE("a freed large block is reused for the next one of its size") {
  trim_host_memory();
  auto first = buffer::host(3 * huge_page);
  auto at = address(first);
  CHECK(recycled_host_memory() == 0);
  first.reset();
  CHECK(recycled_host_memory() == 3 * huge_page);
  auto second = buffer::host(3 * huge_page - 100);
  CHECK(recycled_host_memory() == 0);
  CHECK(address(second) == at);
  // Not reused while it is in use, or if it is much too large.
  CHECK(address(buffer::host(3 * huge_page)) != at);
  second.reset();
  CHECK(address(buffer::host(huge_page)) != at);
}

TEST_CASE("medium blocks are reused for blocks that waste at most a quarter") {
  trim_host_memory();
  constexpr std::size_t kb = 1 << 10;
  for (std::size_t size : {kb, 5 * kb / 4, 64 * kb, 400 * kb, 1024 * kb, 1792 * kb}) {
    CAPTURE(size);
    auto first = buffer::host(size);
    CHECK(first.capacity() >= size);
    CHECK(first.capacity() <= size + size / 4);
    const auto at = address(first);
    first.reset();
    CHECK(recycled_host_memory() > 0);
    auto again = buffer::host(size - 1);
    CHECK(address(again) == at);
    CHECK(again.unique());
    CHECK(address(buffer::host(size)) != at);
    again.reset();
    CHECK(address(buffer::host(size / 2)) != at);
    trim_host_memory();
    CHECK(recycled_host_memory() == 0);
  }
  auto small = buffer::host(kb - 64);
  small.reset();
  CHECK(recycled_host_memory() == 0);
}

TEST_CASE("no more than 64 MB of medium blocks are kept") {
  trim_host_memory();
  constexpr std::size_t size = 1 << 20;
  std::vector<buffer> all;
  for (int i = 0; i < 80; ++i) all.push_back(buffer::host(size));
  all.clear();
  CHECK(recycled_host_memory() == 64 * size);
  trim_host_memory();
}

TEST_CASE("a recycled block has one owner again") {
  trim_host_memory();
  auto first = buffer::host(huge_page);
  auto copy = first;
  first.reset();
  copy.reset();
  auto again = buffer::host(huge_page);
  CHECK(again.unique());
}

TEST_CASE("copies share a block, and the last one releases it") {
  auto a = buffer::host(100);
  CHECK(a.unique());
  auto b = a;
  CHECK(a == b);
  CHECK(a.data() == b.data());
  CHECK_FALSE(a.unique());
  buffer c = std::move(b);
  CHECK(c == a);
  CHECK_FALSE(a.unique());
  c.reset();
  CHECK(a.unique());
  a = static_cast<const buffer&>(a);
  CHECK(a.unique());
}

TEST_CASE("the reference count is right when threads copy at the same time") {
  auto a = buffer::host(100);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 10'000; ++k) {
        buffer copy = a;
        buffer moved = std::move(copy);
      }
    });
  for (auto& t : threads) t.join();
  CHECK(a.unique());
}

TEST_CASE("an empty buffer has no memory") {
  buffer b;
  CHECK_FALSE(b);
  CHECK(b.data() == nullptr);
  CHECK(b.capacity() == 0);
  CHECK(b.home() == nullptr);
  CHECK_FALSE(b.unique());
}

TEST_CASE("borrowed memory is neither written nor freed") {
  float mine[3] = {1, 2, 3};
  {
    auto b = buffer::borrow(mine, sizeof mine);
    CHECK(b.data() == mine);
    CHECK(b.capacity() == sizeof mine);
    CHECK(b.is_borrowed());
    CHECK_FALSE(b.unique());
  }
  CHECK(mine[2] == 3);
  CHECK_FALSE(buffer::host(8).is_borrowed());
}

TEST_CASE("the pages of large blocks can be found, and are told of before they are unmapped") {
  static std::vector<void*> unmapped;
  trim_host_memory();
  on_host_unmap([](const host_mapping& m) noexcept { unmapped.push_back(m.data); });
  buffer large = buffer::host(std::size_t{5} << 20), small = buffer::host(100'000);
  char* const at = static_cast<char*>(large.data());
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, large.capacity() - 1}) {
    const host_mapping m = find_host_mapping(at + i);
    CHECK(m.data == at);
    CHECK(m.bytes == large.capacity());
  }
  CHECK(find_host_mapping(at - 1).data != at);
  CHECK(find_host_mapping(at + large.capacity()).data != at);
  CHECK_FALSE(find_host_mapping(small.data()).data);
  CHECK_FALSE(find_host_mapping(nullptr).data);
  large.reset();
  CHECK(unmapped.empty());  // it is kept for the next one
  trim_host_memory();
  CHECK(unmapped == std::vector<void*>{at});
  CHECK_FALSE(find_host_mapping(at).data);
  on_host_unmap(nullptr);
}

TEST_CASE("an absurd size fails with resource_exhausted") {
  for (auto bytes : {std::size_t{1} << 45, (std::size_t{1} << 46) + 1, ~std::size_t{0}}) {
    CAPTURE(bytes);
    CHECK(testing::error_of([&] {
            buffer::host(bytes);
          }).starts_with(str("resource_exhausted: cannot allocate ", bytes, " bytes")));
  }
}

TEST_CASE("a buffer keeps the owner of its memory, which is not written") {
  auto owner = std::make_shared<const int>(7);
  const std::weak_ptr<const int> watch = owner;
  const int* const p = owner.get();
  any_array a(dtype::int32, dims{}, buffer::kept_by(std::move(owner), p, sizeof *p));
  CHECK(a.raw() == p);
  CHECK_FALSE(a.storage().unique());
  CHECK_FALSE(a.storage().is_borrowed());
  any_array b = a;
  *a.mutable_data<std::int32_t>() = 8;  // of a copy
  CHECK(a.storage().unique());
  CHECK(b.item<std::int32_t>() == 7);
  CHECK_FALSE(watch.expired());
  b = {};
  CHECK(watch.expired());
}
