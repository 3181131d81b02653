// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <deft/kernels/row_call_list.hpp>
#include <vector>

using namespace deft;
using namespace deft::ext;

namespace {

/// out = the sum of `Operands` operands, of which those with a mask have n elements.
template <std::uint32_t Operands>
void add_all(const row_call& c) {
  for (std::int64_t i = 0; i < c.n; ++i) {
    std::int64_t sum = 0;
    for (std::uint32_t k = 0; k < Operands; ++k)
      sum += static_cast<const std::int64_t*>(c.in[k])[c.mask[k] ? i : 0];
    static_cast<std::int64_t*>(c.out)[i] = sum;
  }
}
constexpr void (*rows_of[])(const row_call&) = {&add_all<0>, &add_all<1>, &add_all<2>,
                                                &add_all<3>, &add_all<4>, &add_all<5>};

}  // namespace

TEST_CASE("bound rows compute what the calls that they were made from compute") {
  constexpr std::size_t calls = 3000, n = 4;
  std::vector<std::int64_t> x(calls + n);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int64_t>(i * i % 101);
  exec::bound_rows rows;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::int64_t> expected(calls * n), got(calls * n);
    std::vector<const exec::bound_call*> kept;
    for (std::size_t i = 0; i < calls; ++i) {
      // The list keeps copies: these go.
      const std::uint32_t operands = 1 + static_cast<std::uint32_t>(i) % 5;
      const void* in[5];
      std::uintptr_t mask[5];
      for (std::uint32_t k = 0; k < operands; ++k)
        in[k] = &x[i], mask[k] = k % 2 ? ~std::uintptr_t{0} : 0;
      rows_of[operands]({in, mask, &expected[i * n], n});
      const bound_row one[] = {{rows_of[operands], {in, mask, &got[i * n], n}, operands}};
      kept.push_back(rows.add(one));
    }
    for (const auto* c : kept) c->run_all();
    CHECK(got == expected);
    rows.clear();
  }
  CHECK(rows.add({}) == nullptr);  // there is nothing to bind
}

TEST_CASE("the rows of a kernel run in their order") {
  exec::bound_rows rows;
  std::int64_t first = 3, second = 0, third = 0;
  const void* const in[] = {&first, &first};
  const void* const then[] = {&second, &first};
  const std::uintptr_t mask[] = {0, 0};
  const bound_row steps[] = {{&add_all<2>, {in, mask, &second, 1}, 2},
                             {&add_all<2>, {then, mask, &third, 1}, 2}};
  rows.add(steps)->run_all();
  CHECK(second == 6);
  CHECK(third == 9);
}
