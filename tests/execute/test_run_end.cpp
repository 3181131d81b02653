// SPDX-License-Identifier: Apache-2.0
// Runs that are cancelled or fail, and what they may have changed.
#include "executing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::fed;
using testing::first_of;
using testing::nothing;
using testing::own_graph;
using testing::part_for;
using testing::slot_of;
using testing::small_task;
using testing::start;

TEST_CASE_FIXTURE(own_graph, "a cancelled run ends between nodes") {
  placeholder<float> x("x");
  any_tensor y = exp(any_tensor(x));
  small_task task;
  executable code(part_for({y}, {x}), task.resources());
  auto frame = code.make_frame();
  std::stop_source cancelled;
  cancelled.request_stop();
  ndarray<float> v(0.f);
  feed_ref f[] = {fed(v)};
  CHECK(testing::error_of([&] {
          frame->run(f, {.step = 1, .stop = cancelled.get_token()});
        }).starts_with("cancelled: the step was cancelled"));
  start(*frame, f);
  CHECK(first_of(frame->peek(0)) == 1.f);
}

TEST_CASE_FIXTURE(own_graph, "a run that is cancelled before it begins changes nothing") {
  variable<float> v("v", zeros());
  small_task task;
  executable initialize(part_for({v.assign(v.initial_value()).value()}), task.resources());
  start(*initialize.make_frame(), nothing);
  executable add(part_for({v.assign_add(1.f).value()}), task.resources());
  executable read(part_for({any_tensor(v)}), task.resources());
  executable constant_only(part_for({any_tensor(constant(3.f))}), task.resources());
  std::stop_source cancelled;
  cancelled.request_stop();
  auto adds = add.make_frame(), reads = read.make_frame(), takes = constant_only.make_frame();
  for (int i = 0; i < 2; ++i) {  // bound calls, too
    for (auto* frame : {adds.get(), takes.get()})
      CHECK(testing::error_of([&] {
              frame->run({}, {.step = 1, .stop = cancelled.get_token()});
            }).starts_with("cancelled: the step was cancelled"));
    CHECK_FALSE(adds->has_updated());
    start(*reads, nothing);
    CHECK(first_of(reads->peek(0)) == static_cast<float>(i));
    start(*adds, nothing);
  }
}

TEST_CASE_FIXTURE(own_graph, "a failed run knows whether it may have changed a variable") {
  variable<float> v("v", zeros());
  placeholder<std::int32_t> x("x");
  const auto quotient = [&] { return any_tensor(constant(1)) / any_tensor(x); };
  any_tensor init = v.assign(v.initial_value()).value(), first = quotient(), late;
  if (auto after = control_dependencies(first)) late = v.assign_add(1.f).value();
  any_tensor early = v.assign_add(1.f).value(), last;
  if (auto after = control_dependencies(early)) last = quotient();
  small_task task;
  auto initialize = executable(part_for({init}), task.resources());
  start(*initialize.make_frame(), nothing);
  const ndarray<std::int32_t> zero(0), one(1);
  const feed_ref bad[] = {fed(zero)}, good[] = {fed(one)};
  for (const bool updates : {false, true}) {
    CAPTURE(updates);
    executable code(updates ? part_for({early, last}, {x}) : part_for({late}, {x}),
                    task.resources());
    auto frame = code.make_frame();
    for (int i = 0; i < 2; ++i) {
      CHECK(testing::error_of([&] { start(*frame, bad); }).find("zero") != std::string::npos);
      CHECK(frame->has_updated() == updates);
      start(*frame, good);
    }
    std::stop_source stopped;
    stopped.request_stop();
    CHECK(!testing::error_of([&] {
             frame->run(good, {.step = 1, .stop = stopped.get_token()});
           }).empty());
    CHECK_FALSE(frame->has_updated());
  }
  CHECK(first_of(slot_of(task, {dims{}, dtype::float32}).value) == 2.f + 4.f);
}
