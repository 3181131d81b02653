// SPDX-License-Identifier: Apache-2.0
// tests/device/test_name.cpp: device names are parsed, printed, merged and matched as in
// TensorFlow.
#include <deft/device/name.hpp>
// its own header comes first, to check that it is self-contained
#include <doctest/doctest.h>
#include <deft/core/error.hpp>
#include <set>
#include <unordered_set>

using namespace deft;
using namespace deft::ext;

static std::string canonical(std::string_view text) { return to_string(parse_device(text)); }

TEST_CASE("a device name is parsed in every form, and printed in one") {
  struct row {
    const char *text, *printed;
  };
  const row rows[] = {
      {"", ""},
      {"/job:worker/replica:0/task:1/gpu:0", "/job:worker/replica:0/task:1/gpu:0"},
      {"/job:worker/replica:0/task:1/device:GPU:0", "/job:worker/replica:0/task:1/gpu:0"},
      {"/job:worker/replica:0/task:1/GPU:0", "/job:worker/replica:0/task:1/gpu:0"},
      {"/device:cpu:3", "/cpu:3"},
      {"/gpu:1", "/gpu:1"},
      {"/gpu", "/gpu:*"},
      {"/gpu:*", "/gpu:*"},
      {"/device:GPU", "/gpu:*"},
      {"/device:*:2", "/device:*:2"},
      {"/device:*", ""},
      {"/job:*/replica:*/task:*/device:*:*", ""},
      {"/job:ps", "/job:ps"},
      {"/task:7", "/task:7"},
      {"/cpu:0/task:2/job:my_job2", "/job:my_job2/task:2/cpu:0"},
      {"/null:0", "/null:0"},
      {"/JOB:worker/Replica:0/TASK:1/DEVICE:Cpu:2", "/job:worker/replica:0/task:1/cpu:2"},
      {"/task:2147483647", "/task:2147483647"},
  };
  for (const row& r : rows) {
    CAPTURE(r.text);
    CHECK(canonical(r.text) == r.printed);
    CHECK(parse_device(canonical(r.text)) == parse_device(r.text));
  }
}

TEST_CASE("a malformed device name says what was wrong and where") {
  struct row {
    const char *text, *message;
  };
  const row rows[] = {
      {"gpu:0", "malformed device name \"gpu:0\": expected '/' in front of it (at character 1)"},
      {"/", "malformed device name \"/\": expected a part's name, got its end (at character 2)"},
      {"/job",
       "malformed device name \"/job\": expected ':' after \"job\", got its end (at "
       "character 5)"},
      {"/job:",
       "malformed device name \"/job:\": expected a job's name or '*', got its end (at "
       "character 6)"},
      {"/job:1a",
       "malformed device name \"/job:1a\": expected a job's name or '*', got '1' (at "
       "character 6)"},
      {"/job:ps/tsk:x",
       "malformed device name \"/job:ps/tsk:x\": unknown part \"tsk\": expected job, replica, "
       "task, "
       "cpu, gpu or device; did you mean task? (at character 9)"},
      {"/Jobb:ps",
       "malformed device name \"/Jobb:ps\": unknown part \"Jobb\": expected job, replica, task, "
       "cpu, "
       "gpu or device; did you mean job? (at character 2)"},
      {"/job:ps/cpu:x",
       "malformed device name \"/job:ps/cpu:x\": expected a number or '*' after \"cpu:\", got "
       "'x' (at character 13)"},
      {"/mesh:x",
       "malformed device name \"/mesh:x\": unknown part \"mesh\": expected job, replica, task, "
       "cpu, "
       "gpu or device (at character 2)"},
      {"/task:-1",
       "malformed device name \"/task:-1\": expected a number or '*' after \"task:\", "
       "got '-' (at character 7)"},
      {"/task:2147483648",
       "malformed device name \"/task:2147483648\": the number after \"task:\" "
       "is too large (at character 7)"},
      {"/gpu:0x",
       "malformed device name \"/gpu:0x\": unexpected 'x' after a part (at character "
       "7)"},
      {"/gpu:0/",
       "malformed device name \"/gpu:0/\": expected a part's name, got its end (at "
       "character 8)"},
      {"/job:a//gpu:0",
       "malformed device name \"/job:a//gpu:0\": expected a part's name, got '/' "
       "(at character 8)"},
      {"/job:a/job:b", "malformed device name \"/job:a/job:b\": a second job (at character 8)"},
      {"/cpu:0/device:GPU:0",
       "malformed device name \"/cpu:0/device:GPU:0\": a second device (at "
       "character 8)"},
      {"/job:*/job:*", "malformed device name \"/job:*/job:*\": a second job (at character 8)"},
  };
  for (const row& r : rows) {
    CAPTURE(r.text);
    std::string message;
    try {
      parse_device(r.text);
    } catch (const error& e) {
      message = e.what();
      CHECK(e.code() == errc::invalid_argument);
    }
    CHECK(message == r.message);
  }
}

TEST_CASE("merging keeps what the inner name sets and fills in the rest") {
  struct row {
    const char *outer, *inner, *merged;
  };
  const row rows[] = {
      {"", "/gpu:0", "/gpu:0"},
      {"/gpu:0", "", "/gpu:0"},
      {"/job:ps/task:1", "/gpu:0", "/job:ps/task:1/gpu:0"},
      {"/job:ps/task:1", "/job:worker", "/job:worker/task:1"},
      {"/job:ps/task:1/cpu:0", "/task:0/gpu:2", "/job:ps/task:0/gpu:2"},
      {"/gpu:1", "/gpu:*", "/gpu:1"},
      {"/gpu:1", "/cpu", "/cpu:*"},
      {"/gpu:1", "/device:*:0", "/gpu:0"},
      {"/device:*:1", "/gpu", "/gpu:1"},
  };
  for (const row& r : rows) {
    CAPTURE(r.outer);
    CAPTURE(r.inner);
    CHECK(to_string(merge(parse_device(r.outer), parse_device(r.inner))) == r.merged);
  }
}

TEST_CASE("a pattern matches names that have every part it sets") {
  auto full = parse_device("/job:worker/replica:0/task:1/gpu:0");
  CHECK(full.full());
  for (const char* p : {"", "/gpu:0", "/gpu:*", "/job:worker", "/task:1/gpu", "/job:*/device:*:0"})
    CHECK_MESSAGE(matches(parse_device(p), full), p);
  for (const char* p : {"/cpu:0", "/gpu:1", "/job:ps", "/task:0", "/replica:1", "/device:*:2"})
    CHECK_FALSE_MESSAGE(matches(parse_device(p), full), p);
  CHECK_FALSE(matches(full, parse_device("/job:worker")));
  CHECK(to_string(full.task_name()) == "/job:worker/replica:0/task:1");
}

TEST_CASE("device names are ordered, compared and hashed") {
  auto a = parse_device("/job:ps/task:0/cpu:0"), b = parse_device("/job:ps/task:1/cpu:0");
  CHECK(a < b);
  CHECK(a != b);
  CHECK(std::set<device_name>{b, a, a}.size() == 2);
  CHECK(std::unordered_set<device_name>{b, a, a}.size() == 2);
  CHECK(hash_of(a) == hash_of(parse_device("/cpu:0/task:0/job:ps")));
}
