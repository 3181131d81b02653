// SPDX-License-Identifier: Apache-2.0
#include <deft/core/json.ipp>

#include "testing.hpp"

using namespace deft;
using testing::error_of;

TEST_CASE("JSON is parsed as it is, and refused if an object has a key twice") {
  CHECK(detail::parse_json(R"({"a":[1,{"a":2.5}],"b":{"a":null}})", "it").at("a").at(0) == 1);
  CHECK(detail::parse_json("[{\"a\":1},{\"a\":1}]", "it").as_array().size() == 2);
  const std::pair<const char*, const char*> refused[] = {
      {R"({"a":1,"a":1})", "has the key \"a\" twice"},
      {R"([1,{"b":{"a":1,"c":[],"a":{}}}])", "has the key \"a\" twice"},
      {R"({"a":1,"\u0061":2})", "has the key \"a\" twice"},
      {"{\"\\n\":1,\"\\n\":2}", "has the key \"\\n\" twice"},
      {R"({"a":1)", "is not JSON: incomplete JSON"},
      {R"({"a":1}})", "is not JSON: extra data"},
      {"", "is not JSON: incomplete JSON"},
      {"{\"a\xff\":1}", "is not JSON: "},
  };
  for (const auto& [text, what] : refused) {
    const std::string e = error_of([t = text] { detail::parse_json(t, "the header"); });
    CAPTURE(e);
    CHECK(e.starts_with(std::string("data_loss: the header ") + what));
  }
}
