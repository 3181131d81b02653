// SPDX-License-Identifier: Apache-2.0
#include <deft/core/registry.hpp>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "testing.hpp"

using namespace deft::ext;

namespace {

struct named_number : registry<named_number>::link {
  static registry<named_number> all;
  explicit named_number(int n, registry<named_number>& to = all) : number(n) { to.add(*this); }
  const int number;
};

// Before the list, in the order of initialization.
const named_number early(1);
constinit registry<named_number> named_number::all;
const named_number late(2);

std::vector<int> numbers(const registry<named_number>& of) {
  std::vector<int> found;
  for (const named_number& n : of) found.push_back(n.number);
  return found;
}

}  // namespace

TEST_CASE("objects with static storage are in their list, the newest one first") {
  CHECK(numbers(named_number::all) == std::vector{2, 1});
}

TEST_CASE("a look-up that failed sees the new entries again") {
  registry<named_number> list;
  const named_number* seen = nullptr;
  std::vector<int> found;
  const auto keep = [&](const named_number& n) { found.push_back(n.number); };
  list.each_new(seen, keep);
  CHECK(found.empty());

  const named_number first(1, list), second(2, list);
  CHECK_THROWS_AS(list.each_new(seen, [](const named_number&) { throw std::runtime_error(""); }),
                  std::runtime_error);
  list.each_new(seen, keep);
  CHECK(found == std::vector{2, 1});
  const named_number third(3, list);
  list.each_new(seen, keep);
  list.each_new(seen, keep);
  CHECK(found == std::vector{2, 1, 3});
}

TEST_CASE("threads that load libraries may add entries at the same time") {
  registry<named_number> list;
  std::vector<std::unique_ptr<named_number>> made(400);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < made.size(); i += 4)
          made[i] = std::make_unique<named_number>(static_cast<int>(i), list);
      });
  }
  CHECK(numbers(list).size() == made.size());
}
