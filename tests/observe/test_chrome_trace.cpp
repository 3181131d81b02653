// SPDX-License-Identifier: Apache-2.0
#include <deft/observe/chrome_trace.hpp>

#include <boost/json.hpp>
#include <deft/core/file.hpp>
#include <map>

#include "../comma_locale.hpp"
#include "../data/temporary_folder.hpp"
#include "../testing.hpp"

using namespace deft;
using namespace deft::ext;
namespace json = boost::json;

namespace {
const step_trace two_tasks{{
    {"a", "add", "model.cpp:3", "/job:ps/replica:0/task:0/cpu:0", 0, 5'000, 6'500},
    {"b \"quoted\"", "mul", "", "/job:worker/replica:0/task:1/gpu:1", 2, 7'000, 9'000},
    {"c", "mul", "", "/job:worker/replica:0/task:1/gpu:1", 2, 9'000, 9'250},
}};
}  // namespace

TEST_CASE("a trace as Chrome's JSON: tasks are processes, lanes of devices are threads") {
  const json::value all = json::parse(chrome_trace(two_tasks));
  std::map<std::string, json::object> nodes, processes, threads;
  for (const auto& v : all.at("traceEvents").as_array()) {
    const json::object& e = v.as_object();
    const std::string name(e.at("name").as_string());
    if (e.at("ph") == "X")
      nodes[name] = e;
    else
      (name == "process_name" ? processes
                              : threads)[std::string(e.at("args").at("name").as_string())] = e;
  }
  REQUIRE(nodes.size() == 3);
  REQUIRE(processes.size() == 2);
  REQUIRE(threads.size() == 2);
  const json::object &a = nodes["a"], &b = nodes["b \"quoted\""], &c = nodes["c"];
  CHECK(a.at("ts") == 0.0);
  CHECK(a.at("dur") == 1.5);
  CHECK(b.at("ts") == 2.0);
  CHECK(a.at("args").at("op") == "add");
  CHECK(a.at("args").at("at") == "model.cpp:3");
  CHECK(!b.at("args").as_object().contains("at"));
  CHECK(b.at("tid") == c.at("tid"));
  CHECK(a.at("pid") == processes["/job:ps/replica:0/task:0"].at("pid"));
  CHECK(b.at("pid") == processes["/job:worker/replica:0/task:1"].at("pid"));
  CHECK(b.at("tid") == threads["/gpu:1 lane 2"].at("tid"));
  CHECK(b.at("pid") == threads["/gpu:1 lane 2"].at("pid"));
}

TEST_CASE("a trace is the same in every locale") {
  const std::string text = chrome_trace(two_tasks);
  const testing::comma_locale german;
  CHECK(chrome_trace(two_tasks) == text);
}

TEST_CASE("a trace is UTF-8, whatever names are") {
  const std::string text =
      chrome_trace({{{"f\xfcr", "mul", "gr\xf6\xdf\x65.cpp:3", "/job:a/task:0/cpu:0", 0, 0, 1}}});
  CHECK(is_utf8(text));
  const json::value all = json::parse(text);
  const json::value& e = all.at("traceEvents").at(0);
  CHECK(e.at("name") == "f\\xfcr");
  CHECK(e.at("args").at("at") == "gr\\xf6\\xdfe.cpp:3");
}

TEST_CASE("a trace of nothing is valid, and a file has the same text") {
  CHECK(json::parse(chrome_trace({})).at("traceEvents").as_array().empty());
  testing::temporary_folder folder;
  const std::string path = (folder / "step.json").string();
  write_chrome_trace(path, two_tasks);
  CHECK(read_file(file_roots::anywhere(), path, 1 << 20) == chrome_trace(two_tasks));
  CHECK_THROWS_AS(write_chrome_trace((folder / "none/step.json").string(), two_tasks), error);
}
