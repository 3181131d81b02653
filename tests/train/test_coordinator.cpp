// SPDX-License-Identifier: Apache-2.0
#include <deft/train/coordinator.hpp>

#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;

TEST_CASE("the first exception stops all threads, and join throws it") {
  coordinator c;
  std::atomic<int> ended{0};
  for (int i = 0; i < 3; ++i)
    c.start([&] {
      c.wait_for_stop();
      CHECK(c.should_stop());
      ++ended;
    });
  CHECK_FALSE(c.should_stop());
  c.start([] { fail(errc::data_loss, "the file is damaged"); });
  CHECK(error_of([&] { c.join(); }) == "data_loss: the file is damaged");
  CHECK(ended == 3);
  CHECK(error_of([&] { c.join(); }).empty());
  CHECK(error_of([&] { c.start([] {}); }).starts_with("failed_precondition: [coordinator] "));
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "threads run until they are asked to stop, in the caller's graph") {
  variable<std::int64_t> count("count", std::int64_t{0});
  const operation more = count.assign_add(std::int64_t{1});
  session s;
  s.run(initialize_all());
  testing::log_lines lines;
  {
    coordinator c;
    for (int i = 0; i < 2; ++i)
      c.start([&] {
        do s.run(more);
        while (!c.should_stop());
        CHECK(current_graph() == g);
      });
    c.start([] { throw std::runtime_error("unread"); });
    c.wait_for_stop();
  }
  CHECK(s.run(count) >= 2);
  CHECK(join(lines.take(), "\n").find("[coordinator] a thread ended with: unread") !=
        std::string::npos);
}
