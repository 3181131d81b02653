// SPDX-License-Identifier: Apache-2.0
// Saves while others train, or save in the same directory.
#include <sys/inotify.h>
#include <unistd.h>

#include <deft/core/safetensors.hpp>
#include <deft/train/checkpoint_index.hpp>
#include <deft/train/monitored_session.hpp>
#include <deft/train/saver.hpp>
#include <deft/train/sync_replicas.hpp>

#include "../data/temporary_folder.hpp"
#include "../session/processes.hpp"
#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;
using testing::names_in;
using testing::own_graph;
using testing::temporary_folder;

TEST_CASE_FIXTURE(own_graph, "while others train, every saved value is one that the variable had") {
  const temporary_folder folder;
  local_cluster c({{"ps", 2}, {"worker", 1}}, {.file_roots = {folder.path().string()}});
  auto there = on(replica_device(c.spec(), "/job:worker/task:0"));
  variable<float, 200'000> a("a", zeros()), b("b", zeros());
  session s(c.target("worker", 0));
  s.run(initialize_all());
  const operation train = group(a.assign_add(1.f), b.assign_add(1.f));
  std::jthread trains([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) s.run(train);
  });
  saver save({.max_to_keep = 1});
  float last = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string path = save.save(s, folder / "m", i);
    for (const auto& [file, name] :
         {std::pair(".1.ps-0.safetensors", "a"), std::pair(".1.ps-1.safetensors", "b")}) {
      const any_array v = read_safetensors(path + file).at(name);
      const float first = v.data<float>()[0];
      CHECK(std::ranges::all_of(v.span<float>(), [&](float e) { return e == first; }));
      if (name == std::string("a")) {
        CHECK(first >= last);
        last = first;
      }
    }
  }
  CHECK(last > 0);
}

TEST_CASE_FIXTURE(own_graph, "a save leaves files of others alone, also of the same step") {
  const temporary_folder folder;
  variable<float> w("w", 1.f);
  variable<std::int64_t> step("step", std::int64_t{3});
  session s;
  s.run(initialize_all());
  // Of other processes: one that saves as this one does, and one that saves the same step.
  std::optional<detail::index_writer> unnamed(folder / "m"), same(folder / "m-3");
  const std::vector<std::string> theirs{"m-3.1.localhost-0.safetensors",
                                        "m.1-77.localhost-0.safetensors",
                                        "m.1.localhost-0.safetensors"};
  for (const auto& name : theirs) testing::write_bytes(folder / name, "x");
  SUBCASE("whose step is not known yet") {
    CHECK(saver().save(s, folder / "m", step) == folder / "m-3");
  }
  SUBCASE("of a step that is given") { CHECK(saver().save(s, folder / "m", 3) == folder / "m-3"); }
  for (const auto& name : theirs) CHECK(testing::read_bytes(folder / name) == "x");
  CHECK(read_safetensors(folder / "m-3.2.localhost-0.safetensors").contains("step"));
  unnamed.reset();
  same.reset();
  s.run(step.assign(4));
  saver().save(s, folder / "m", step);  // they were leftovers now
  CHECK(names_in(folder) ==
        std::vector<std::string>{"m-3.2.localhost-0.safetensors", "m-3.index.json",
                                 "m-4.1.localhost-0.safetensors", "m-4.index.json"});
}

namespace {

/// The names of what appears in a folder and disappears from it, in order: "+name", "-name".
class changes_of {
 public:
  explicit changes_of(const temporary_folder& folder) : events_(inotify_init1(IN_NONBLOCK)) {
    REQUIRE(inotify_add_watch(events_.get(), folder.path().c_str(),
                              IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO) >= 0);
  }
  std::vector<std::string> take() {
    std::vector<std::string> all;
    alignas(inotify_event) char buffer[16'384];
    for (ssize_t n; (n = read(events_.get(), buffer, sizeof buffer)) > 0;)
      for (const char* at = buffer; at < buffer + n;) {
        const auto& e = *reinterpret_cast<const inotify_event*>(at);
        const bool here = (e.mask & (IN_CREATE | IN_MOVED_TO)) != 0;
        all.push_back(str(here ? "+" : "-", static_cast<const char*>(e.name)));
        at += sizeof(inotify_event) + e.len;
      }
    return all;
  }

 private:
  const file_descriptor events_;
};

}  // namespace

TEST_CASE_FIXTURE(own_graph, "an index is being written as long as files have its name") {
  const temporary_folder folder;
  variable<std::int64_t> step("step", std::int64_t{3});
  session s;
  s.run(initialize_all());
  changes_of changes(folder);
  saver().save(s, folder / "m", step);
  const auto all = changes.take();
  CAPTURE(join(all, " "));
  const auto first = [&](std::string_view beginning) {
    return std::ranges::find_if(all, [&](const auto& c) { return c.starts_with(beginning); });
  };
  const auto files = first("+m.1-"), named = first("+m-3.1.localhost-0.safetensors");
  const auto gone = first("-m.index.json."), index = first("+m-3.index.json.");
  REQUIRE(files != all.end());
  REQUIRE(named != all.end());
  REQUIRE(gone != all.end());
  CHECK(first("+m.index.json.") < files);
  CHECK(index < named);
  CHECK(named < gone);
}

TEST_CASE_FIXTURE(own_graph, "the values that a task saves are of one moment") {
  const temporary_folder folder;
  local_cluster c({{"ps", 1}, {"worker", 1}}, {.file_roots = {folder.path().string()}});
  auto there = on(device("/job:ps"));
  std::vector<variable<float, 20'000>> all;
  for (int i = 0; i < 20; ++i) all.emplace_back(str("v", i), zeros());
  std::vector<operation> steps;  // one after the other
  for (auto& v : all) {
    std::vector<node_ref> before;
    if (!steps.empty()) before.push_back(steps.back().handle());
    const control_scope after(before);
    steps.push_back(v.assign_add(1.f));
  }
  session s(c.target("worker", 0));
  s.run(initialize_all());
  const operation train = group(steps);
  std::jthread trains([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) s.run(train);
  });
  saver save({.max_to_keep = 1});
  for (int i = 0; i < 30; ++i) {
    const auto saved =
        read_safetensors(save.save(s, folder / "m") + str(".", i + 1, ".ps-0.safetensors"));
    float last = saved.at("v0").data<float>()[0];
    const float first = last;
    for (std::size_t k = 1; k < all.size(); ++k) {
      const float next = saved.at(str("v", k)).data<float>()[0];
      CHECK(next <= last);       // those that are updated first are ahead,
      CHECK(next >= first - 1);  // by one at most
      last = next;
    }
  }
}

TEST_CASE("checkpoints of synchronous training are of one round, on all tasks") {
  const temporary_folder folder;
  const std::string where = folder.path().string();
  testing::threaded_job job(2, 2, {"--file_root=" + where});
  const auto codes = job.run([&](task& self) {
    auto scope = on(replica_device(self.cluster(), self.device()));
    variable<float> a("a", 0.f), b("b", 0.f);
    const auto step = global_step();
    const operation train = sync_replicas(sgd(1), 2, 2).minimize(a * 1.f + b * 1.f, step);
    monitored_session s(self, {.checkpoint_dir = where,
                               .hooks = {stop_at_step(60)},
                               .checkpoint_steps = 1,
                               .max_to_keep = 0});
    while (!s.should_stop()) s.run(train);
  });
  CHECK(codes == std::vector<int>(4, 0));
  const auto all = checkpoints_in(where);
  CHECK(all.size() > 10);
  for (const std::string& path : all) {
    CAPTURE(path);
    std::map<std::string, any_array> values;
    for (const char* file : {".1.ps-0.safetensors", ".1.ps-1.safetensors"})
      values.merge(read_safetensors(path + file));
    const auto steps = static_cast<float>(values.at("global_step").item<std::int64_t>());
    CHECK(path.ends_with(str("-", values.at("global_step").item<std::int64_t>())));
    CHECK(values.at("a").item<float>() == -steps);
    CHECK(values.at("b").item<float>() == -steps);
  }
}

TEST_CASE_FIXTURE(own_graph, "rounds of synchronous training go on after saves that failed") {
  const temporary_folder folder;
  local_cluster c({{"ps", 1}, {"worker", 1}});  // which may not write
  auto there = on(device("/job:ps"));
  variable<float> w("w", 1.f);
  const operation train = sync_replicas(sgd(1), 1, 1).minimize(w * 1.f, global_step());
  session s(c.target("worker", 0));
  s.run(initialize_all());
  const replica_updates updates(s);
  saver save;
  for (int i = 0; i < 5; ++i) {
    CHECK(error_of([&] { save.save(s, folder / "m", i); }).starts_with("permission_denied: "));
    s.run(train);
  }
  CHECK(s.run(w) == -4);
}
