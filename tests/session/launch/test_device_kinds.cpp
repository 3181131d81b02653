// SPDX-License-Identifier: Apache-2.0
// A kind of device that this program registers, with a setting.
#include <unistd.h>
#include <deft/session/launch/task.hpp>

#include "environment.hpp"
#include "execute/null_device.hpp"
#include "session/sessions.hpp"

using namespace deft;
using namespace deft::ext;
using testing::environment;
using testing::error_of;

namespace {

constexpr device_setting npu_settings[] = {
    {.flag = "npu_devices",
     .meaning = "number of devices /npu:0, /npu:1, …",
     .variable = "DEFT_NPU_DEVICES",
     .valid = [](double n) { return n >= 0 && n <= 4; },
     .expected = "a number from 0 to 4",
     .otherwise = 0,
     .advice = "--npu_devices says how many NPUs this process has"},
    {.flag = "npu_share", .is = device_setting::form::number, .meaning = "unused"},
};
std::vector<std::unique_ptr<device_runtime>> make_npus(const device_name& task,
                                                       const device_settings& settings) {
  std::vector<std::unique_ptr<device_runtime>> all;
  for (int i = 0; i < settings.get("npu_devices"); ++i)
    all.push_back(std::make_unique<testing::null_device>(task, i, "npu"));
  return all;
}
constexpr device_kind npu_kind{.type = "npu", .settings = npu_settings, .make = &make_npus};
const registered_device_kind registered = npu_kind;

struct words {
  std::vector<const char*> argv{"program"};
  words(std::initializer_list<const char*> w) { argv.insert(argv.end(), w); }
  int argc() const { return static_cast<int>(argv.size()); }
};

std::size_t npus_of(session& s) {
  std::size_t n = 0;
  for (const auto& d : s.devices()) n += d.name->type == "npu";
  return n;
}
std::size_t npus_of(session&& s) { return npus_of(s); }
std::size_t npus_by(const words& w, const session_options& options = {}) {
  task t(w.argc(), w.argv.data());
  return npus_of(session(t, options));
}

/// What `--help` prints.
std::string help() {
  const words w{"--help"};
  std::FILE* const file = std::tmpfile();
  std::fflush(stdout);
  const int before = dup(1);
  dup2(fileno(file), 1);
  CHECK(task_main(w.argc(), w.argv.data(), [](task&) {}) == 0);
  std::fflush(stdout);
  dup2(before, 1);
  close(before);
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  CHECK(std::fread(text.data(), 1, text.size(), file) == text.size());
  std::fclose(file);
  return text;
}

}  // namespace

TEST_CASE_FIXTURE(testing::own_graph, "a node runs on a device of a registered kind") {
  session s({.device_settings = {{"npu_devices", 1}}});
  placeholder<float, 3> x("x");
  auto y = on(device("/npu:0"), [&] { return exp(x); });
  auto z = y + 1;
  CHECK(s.device_of(y) == "/job:localhost/replica:0/task:0/npu:0");
  CHECK(s.device_of(z).find("/npu") == std::string::npos);
  testing::null_traffic().reset();
  CHECK(to_string(ndarray<float, 3>(s.run(z, x = ndarray<float, 3>()))) ==
        to_string(ndarray<float, 3>{2, 2, 2}));
  CHECK(testing::null_traffic().launches == 1);
}

TEST_CASE_FIXTURE(testing::own_graph, "devices know what their kind says") {
  session s({.simulated_gpus = 0, .device_settings = {{"npu_devices", 2}}});
  const auto all = s.devices();
  CHECK(all.front().host);
  CHECK(all.front().rank == 1);
  CHECK(to_string(*all.back().name) == "/job:localhost/replica:0/task:0/npu:1");
  CHECK(!all.back().host);
  CHECK(all.back().rank == 2);
  std::vector<std::string> types;
  for (const device_kind* k : device_kinds()) types.emplace_back(k->type);
  CHECK(types.front() == "cpu");
  CHECK(std::ranges::count(types, "gpu") == 2);
  CHECK(std::ranges::count(types, "npu") == 1);
}

TEST_CASE_FIXTURE(testing::own_graph, "a setting is an option, a flag and a variable") {
  CHECK(npus_of(session()) == 0);
  CHECK(npus_of(session({.device_settings = {{"npu_devices", 2}}})) == 2);
  CHECK(npus_by({}) == 0);
  CHECK(npus_by({"--npu_devices=2"}) == 2);
  CHECK(npus_by({"--npu_devices", "1"}, {.device_settings = {{"npu_devices", 3}}}) == 3);
  CHECK(npus_by({"--job_name=worker", "--worker_hosts=localhost:0", "--npu_devices=2"}) == 2);
  const environment set("DEFT_NPU_DEVICES", "3");
  CHECK(npus_of(session()) == 3);
  CHECK(npus_of(session({.device_settings = {{"npu_devices", 1}}})) == 1);
  CHECK(npus_by({"--npu_devices=2"}) == 2);
}

TEST_CASE("a setting is a line of --help, and so is its variable") {
  const std::string text = help();
  INFO(text);
  CHECK(text.find("  --npu_devices                  number of devices /npu:0, /npu:1, …\n") !=
        text.npos);
  CHECK(text.find("  DEFT_NPU_DEVICES               as --npu_devices\n") != text.npos);
  CHECK(text.find("  --npu_share                    unused\n") != text.npos);
  // The library's own read as ever.
  CHECK(text.find("  --cpu_devices                  number of CPU devices: /cpu:0, /cpu:1, …\n"
                  "  --simulated_gpus               number of GPUs that the CPU simulates: /gpu:0, "
                  "/gpu:1, …\n"
                  "  --allow_tf32                   multiply and convolve floats in TF32 on GPUs: "
                  "faster, with 11 significant bits\n"
                  "  --gpu_memory_limit             memory of each GPU for tensors: a fraction, up "
                  "to 1, or bytes\n") != text.npos);
  CHECK(text.find("  DEFT_SIMULATED_GPUS            as --simulated_gpus\n"
                  "  DEFT_ALLOW_TF32                0 or 1: as --allow_tf32\n"
                  "  DEFT_GPU_MEMORY_LIMIT          as --gpu_memory_limit\n") != text.npos);
}

TEST_CASE_FIXTURE(testing::own_graph, "a wrong value of a setting names it, and so does advice") {
  const auto said = [](const device_settings& s) {
    return error_of([&] { session({.device_settings = s}); });
  };
  CHECK(said({{"npu_devices", 5}}) ==
        "invalid_argument: npu_devices is 5; expected a number from 0 to 4");
  CHECK(said({{"npu_devices", 1.5}}) ==
        "invalid_argument: npu_devices is 1.5; expected a number from 0 to 4");
  CHECK(said({{"npu_device", 1}}) ==
        "invalid_argument: no kind of device has the setting "
        "\"npu_device\"; did you mean npu_devices?");
  CHECK(said({{"color", 1}}) == "invalid_argument: no kind of device has the setting \"color\"");
  {
    const environment set("DEFT_NPU_DEVICES", "many");
    CHECK(said({}) ==
          "invalid_argument: DEFT_NPU_DEVICES is \"many\"; expected a number from 0 to "
          "4");
  }
  session s;
  auto y = on(device("/npu:0"), [] { return constant(1.f) + constant(2.f); });
  CHECK(error_of([&] { s.run(y); }).find("; --npu_devices says how many NPUs this process has") !=
        std::string::npos);
}
