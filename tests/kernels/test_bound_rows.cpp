// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <deft/kernels/row_call_list.hpp>

using namespace deft;
using namespace deft::ext;

namespace {
void nothing(const row_call&) {}
}  // namespace

TEST_CASE("bound rows keep their operands, however many there are") {
  exec::bound_rows rows;
  for (int round = 0; round < 2; ++round) {
    std::vector<const exec::bound_call*> kept;
    for (std::uintptr_t i = 0; i < 3000; ++i) {
      const std::uint32_t n = 1 + i % 5;
      const void* in[5];
      std::uintptr_t mask[5];
      for (std::uint32_t k = 0; k < n; ++k)
        in[k] = reinterpret_cast<const void*>(i + k + 1), mask[k] = i * k;
      const row_call call{in, mask, reinterpret_cast<void*>(i + 9), static_cast<std::int64_t>(i)};
      const bound_row one[] = {{&nothing, call, n}};
      kept.push_back(rows.add(one));
    }
    for (std::uintptr_t i = 0; i < kept.size(); ++i) {
      const row_call& c = kept[i]->row;
      CHECK((kept[i]->run == &nothing));
      CHECK(c.n == static_cast<std::int64_t>(i));
      CHECK(c.out == reinterpret_cast<void*>(i + 9));
      for (std::uint32_t k = 0; k < 1 + i % 5; ++k) {
        CHECK(c.in[k] == reinterpret_cast<const void*>(i + k + 1));
        CHECK(c.mask[k] == i * k);
      }
    }
    rows.clear();
  }
  const bound_row three[] = {{&nothing, {}, 0}, {&nothing, {nullptr, nullptr, &rows, 7}, 0}, {}};
  const exec::bound_call* first = rows.add(std::span(three).first(2));
  REQUIRE(first->next);
  CHECK(first->next->row.out == &rows);
  CHECK(first->next->row.n == 7);
  CHECK(first->next->next == nullptr);
  CHECK(rows.add({}) == nullptr);  // there is nothing to bind
}
