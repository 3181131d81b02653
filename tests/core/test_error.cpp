// SPDX-License-Identifier: Apache-2.0
#include <deft/core/error.hpp>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

TEST_CASE("an error is one sentence with node, source location and device, as far as known") {
  std::string text = "[matmul] inner extents differ: (100,784) x (785,10)";
  source_place place{"src/model.cpp", 31};
  struct {
    error e;
    const char* tail;
  } cases[] = {
      {error(errc::internal, text), ""},
      {error(errc::internal, text, "layer1/matmul"), ", node \"layer1/matmul\""},
      {error(errc::internal, text, "layer1/matmul", place),
       ", node \"layer1/matmul\" at model.cpp:31"},
      {error(errc::internal, text, "", place), " at model.cpp:31"},
      {error(errc::internal, text, "m", place, "/job:ps/replica:0/task:0/cpu:0"),
       ", node \"m\" at model.cpp:31 on /job:ps/replica:0/task:0/cpu:0"},
  };
  for (auto& [e, tail] : cases) {
    CHECK(e.what() == text + tail);
    CHECK(e.message() == text);
  }
}

TEST_CASE("an error keeps its code, node, location and device") {
  error e(errc::aborted, "gone", "w1", {"m.cpp", 3}, "/cpu:0");
  CHECK(e.code() == errc::aborted);
  CHECK(e.node() == "w1");
  CHECK(e.device() == "/cpu:0");
  CHECK(e.where() == source_place{"m.cpp", 3});
}

TEST_CASE("fail joins its arguments and throws a standard exception") {
  CHECK_THROWS_WITH_AS(fail(errc::not_found, "no \"", 7, '"'), "no \"7\"", std::runtime_error);
  CHECK(testing::error_of([] { fail(errc::not_found, "x"); }) == "not_found: x");
}

TEST_CASE("codes have gRPC's numbers and names") {
  const char* names[] = {"cancelled",
                         "unknown",
                         "invalid_argument",
                         "deadline_exceeded",
                         "not_found",
                         "already_exists",
                         "permission_denied",
                         "resource_exhausted",
                         "failed_precondition",
                         "aborted",
                         "out_of_range",
                         "unimplemented",
                         "internal",
                         "unavailable",
                         "data_loss",
                         "unauthenticated"};
  for (int i = 0; i < 16; ++i) CHECK(to_string(static_cast<errc>(i + 1)) == names[i]);
}
