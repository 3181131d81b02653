// SPDX-License-Identifier: Apache-2.0
#include <deft/session/cluster/cluster_spec.hpp>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;

TEST_CASE("a cluster knows its jobs, tasks and addresses") {
  cluster_spec c{{"ps", {"ps0:2222"}}, {"worker", {"wk0:2222", "wk1:2223"}}};
  CHECK(c.has("ps"));
  CHECK(!c.has("chief"));
  CHECK(c.tasks("worker") == 2);
  CHECK(c.tasks("chief") == 0);
  CHECK(c.address("worker", 1) == "wk1:2223");
  CHECK(to_string(c) == "ps: ps0:2222; worker: wk0:2222, wk1:2223");
  CHECK(c.task_names().size() == 3);
  CHECK(to_string(c.task_names()[2]) == "/job:worker/replica:0/task:1");
  c.set_address("worker", 0, "127.0.0.1:7");
  CHECK(c.address("worker", 0) == "127.0.0.1:7");
}

TEST_CASE("an unknown task is named, with the known ones") {
  cluster_spec c{{"ps", {"ps0:2222"}}};
  auto e = error_of([&] { c.address("worker", 3); });
  CHECK(e == "not_found: the cluster has no task /job:worker/task:3; it is ps: ps0:2222");
  CHECK(error_of([&] { c.address("ps", -1); }).starts_with("not_found"));
  CHECK(error_of([&] { c.set_address("ps", 1, "a:1"); }).starts_with("not_found"));
}

TEST_CASE("an invalid cluster is refused, and the fault is named") {
  auto made = [](std::vector<cluster_spec::job> jobs) {
    return error_of([&] { cluster_spec c(jobs); });
  };
  CHECK(made({{"ps", {"a:1"}}, {"ps", {"b:1"}}}) == "invalid_argument: job \"ps\" is listed twice");
  CHECK(made({{"ps", {}}}) == "invalid_argument: job \"ps\" has no tasks");
  for (const char* address : {"host", "host:", ":80", "host:http", "", "a:65536", "a:99999999999",
                              "http://a:1", "a:1:2", "a b:1"}) {
    auto e = made({{"ps", {"b:1", address}}});
    CAPTURE(e);
    CHECK(e.starts_with(
        str("invalid_argument: /job:ps/task:1: \"", address, "\" is not a valid address")));
  }
  for (const char* job : {"no job", "", "*", "a/b", "ps/gpu:3", "ps/task:1", "9"}) {
    CAPTURE(job);
    CHECK(made({{job, {"a:1"}}}).starts_with("invalid_argument"));
  }
  CHECK(made({{"ps", {"a:1"}}, {"worker", {"b:1", "A:1"}}}) ==
        "invalid_argument: /job:ps/task:0 and /job:worker/task:1 have the same address, A:1");
  CHECK(made({{"ps", {"localhost:0", "localhost:0"}}}) == "");  // the system chooses
}

TEST_CASE("tasks compare every address of their clusters, in lower case") {
  const cluster_spec c{{"ps", {"Host-A:1"}}, {"worker", {"b:1", "[::1]:2"}}};
  CHECK(c.entries() == std::vector<std::string>{"/job:ps/task:0 at host-a:1",
                                                "/job:worker/task:0 at b:1",
                                                "/job:worker/task:1 at [::1]:2"});
  CHECK(cluster_spec().entries().empty());
}
