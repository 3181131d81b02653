// SPDX-License-Identifier: Apache-2.0
#include <deft/core/error.hpp>
#include <deft/core/failure.hpp>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

TEST_CASE("an error is one sentence with node, source location and device, as far as known") {
  std::string text = "[matmul] inner extents differ: (100,784) x (785,10)";
  source_location location{"src/model.cpp", 31};
  struct {
    error e;
    const char* tail;
  } cases[] = {
      {error(errc::internal, text), ""},
      {error(errc::internal, text, "layer1/matmul"), ", node \"layer1/matmul\""},
      {error(errc::internal, text, "layer1/matmul", location),
       ", node \"layer1/matmul\" at model.cpp:31"},
      {error(errc::internal, text, "", location), " at model.cpp:31"},
      {error(errc::internal, text, "m", location, "/job:ps/replica:0/task:0/cpu:0"),
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
  CHECK(e.where() == source_location{"m.cpp", 3});
}

TEST_CASE("an error keeps its reason when it is copied, stored, or told in other words") {
  CHECK(error(errc::aborted, "gone").reason() == error_reason::none);
  const auto stored = failure_of([] {
    fail(errc::failed_precondition, error_reason::uninitialized, "variable \"", 'w', "\" is empty");
  });
  CHECK(stored->code() == errc::failed_precondition);
  CHECK(stored->message() == "variable \"w\" is empty");
  CHECK(error(*stored).reason() == error_reason::uninitialized);

  const error located = stored->with_node("w1", {"m.cpp", 3}, "/cpu:0");
  CHECK(located.reason() == error_reason::uninitialized);
  CHECK(located.what() == str(stored->message(), ", node \"w1\" at m.cpp:3 on /cpu:0"));
  const error other = located.with_message("it has no value");
  CHECK(other.reason() == error_reason::uninitialized);
  CHECK(other.code() == errc::failed_precondition);
  CHECK(other.what() == std::string("it has no value, node \"w1\" at m.cpp:3 on /cpu:0"));
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
