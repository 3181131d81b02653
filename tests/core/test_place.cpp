// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <deft/core/place.hpp>

#include "testing.hpp"

using namespace deft;

namespace {
source_place caller(source_place w = here()) { return w; }
}  // namespace

TEST_CASE("a default argument records the caller's line") {
  auto w = caller();
  CHECK(w.line == __LINE__ - 1);
  CHECK(to_string(w) == str("test_place.cpp:", w.line));
}

TEST_CASE("source locations print without folders, unknown ones as empty text") {
  CHECK(to_string(source_place{"/home/me/model.cpp", 31}) == "model.cpp:31");
  CHECK(to_string(source_place{"model.cpp", 7}) == "model.cpp:7");
  CHECK(to_string(source_place{}) == "");
  const source_place model{"/home/me/model.cpp", 31};
  CHECK(where_of(model) == "at model.cpp:31");
  CHECK(where_of(model.nearby()) == "near model.cpp:31");
  CHECK_FALSE(source_place{}.known());
}

TEST_CASE("an interned file name outlives its string and is stored once") {
  const char* name = nullptr;
  {
    std::string file = "far/away.cpp";
    name = intern_file(file);
    file.assign(file.size(), '?');
  }
  CHECK(std::strcmp(name, "far/away.cpp") == 0);
  CHECK(intern_file("far/away.cpp") == name);
  CHECK(intern_file("far/other.cpp") != name);
}
