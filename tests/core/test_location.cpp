// SPDX-License-Identifier: Apache-2.0
#include <deft/core/location.hpp>
// its own header comes first, to check that it is self-contained
#include <deft/core/error.hpp>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {
source_location caller(source_location w = here()) { return w; }
}  // namespace

TEST_CASE("a default argument records the caller's line") {
  auto w = caller();
  CHECK(w.line == __LINE__ - 1);
  CHECK(to_string(w) == str("test_location.cpp:", w.line));
}

TEST_CASE("source locations print without folders, unknown ones as empty text") {
  CHECK(to_string(source_location{"/home/me/model.cpp", 31}) == "model.cpp:31");
  CHECK(to_string(source_location{"model.cpp", 7}) == "model.cpp:7");
  CHECK(to_string(source_location{}) == "");
  const source_location model{"/home/me/model.cpp", 31};
  CHECK(where_of(model) == "at model.cpp:31");
  CHECK(where_of(model.nearby()) == "near model.cpp:31");
  CHECK_FALSE(source_location{}.known());
}

TEST_CASE("the file name that came from a peer lives as long as a location that keeps it") {
  std::weak_ptr<const std::string> name;
  {
    error copy(errc::internal, "other");
    {
      auto file = std::make_shared<const std::string>("far/away.cpp");
      name = file;
      const error e(errc::internal, "it failed", "node", owned_location(std::move(file), 31, true));
      copy = error(e.code(), "it failed again", e.node(), e.where());
    }
    CHECK(std::string_view(copy.where().file) == "far/away.cpp");
    CHECK(where_of(copy.where()) == "near away.cpp:31");
    CHECK_FALSE(name.expired());
  }
  CHECK(name.expired());
}
