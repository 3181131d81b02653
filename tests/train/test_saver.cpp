// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <deft/core/safetensors.hpp>
#include <deft/op/initialized.hpp>
#include <deft/train/checkpoint_index.hpp>
#include <deft/train/monitored_session.hpp>
#include <deft/train/saver.hpp>

#include "../data/temporary_folder.hpp"
#include "../programs.hpp"
#include "../session/processes.hpp"
#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;
using testing::names_in;
using testing::own_graph;
using testing::temporary_folder;
using namespace std::chrono_literals;

TEST_CASE_FIXTURE(own_graph, "variables of a GPU and of the processor are one checkpoint") {
  const temporary_folder folder;
  std::optional<variable<float, 2>> a, b;
  {
    auto there = on(device("/gpu:0"));
    a.emplace("a", ndarray<float, 2>{1, 2});
  }
  {
    auto here = on(device("/cpu:0"));
    b.emplace("b", ndarray<float, 2>{3, 4});
  }
  saver save;
  std::string path;
  {
    session s({.simulated_gpus = 1});
    s.run(initialize_all());
    path = save.save(s, folder / "m");
    s.run(a->assign({5.f, 6.f}));
    save.restore(s, path);
    CHECK(s.run(*a) == ndarray<float, 2>{1, 2});
  }
  for (int gpus : {0, 1}) {  // without one, what is to run on it runs on the processor
    CAPTURE(gpus);
    session s({.allow_soft_placement = true, .simulated_gpus = gpus});
    save.restore(s, path);
    const auto [of_gpu, of_processor] = s.run(*a, *b);
    CHECK(of_gpu == ndarray<float, 2>{1, 2});
    CHECK(of_processor == ndarray<float, 2>{3, 4});
  }
}

TEST_CASE_FIXTURE(own_graph, "variables are saved, and restored in another session") {
  const temporary_folder folder;
  variable<float, 2, 2> w("w", ndarray<float, 2, 2>{1, 2, 3, 4});
  variable<std::int64_t> n("n", std::int64_t{7});
  variable<float, dyn> k("k", ndarray<float, 3>{1, 2, 3});
  saver save;
  std::string path;
  {
    session s;
    s.run(initialize_all());
    path = save.save(s, folder / "deep/model", 12);
    CHECK(path == (folder / "deep/model-12").string());
    CHECK(latest_checkpoint(folder / "deep") == path);
    CHECK(latest_checkpoint(folder / "deep", "other").empty());
  }
  session s;
  const auto found = save.restore(s, path);
  CHECK(found.restorable == std::vector<std::string>{"k", "n", "w"});
  CHECK(s.run(w) == ndarray<float, 2, 2>{1, 2, 3, 4});
  CHECK(s.run(n) == 7);
  CHECK(s.run(k) == ndarray<float, dyn>{1, 2, 3});
  const auto in_file = read_safetensors(path + ".1.localhost-0.safetensors");
  CHECK(in_file.at("w") == ndarray<float, 2, 2>{1, 2, 3, 4}.array());
}

TEST_CASE_FIXTURE(own_graph, "the oldest checkpoints are deleted, one saved twice counts once") {
  const temporary_folder folder;
  variable<float> w("w", 0.f);
  session s;
  s.run(initialize_all());
  saver save({.max_to_keep = 2});
  for (int step : {1, 2, 3, 3, 3}) {
    s.run(w.assign_add(1.f));
    save.save(s, folder / "m", step);
  }
  CHECK(checkpoints_in(folder.path()) == std::vector<std::string>{folder / "m-2", folder / "m-3"});
  CHECK(names_in(folder) ==
        std::vector<std::string>{"m-2.1.localhost-0.safetensors", "m-2.index.json",
                                 "m-3.3.localhost-0.safetensors", "m-3.index.json"});
  save.restore(s, folder / "m-3");
  CHECK(s.run(w) == 5);
  save.restore(s, folder / "m-2");
  CHECK(s.run(w) == 2);

  saver every({.max_to_keep = 1, .keep_every_hours = 1e6});
  every.save(s, folder / "n", 1);
  every.save(s, folder / "n", 2);
  every.save(s, folder / "n", 3);
  CHECK(checkpoints_in(folder.path(), "n") ==
        std::vector<std::string>{folder / "n-1", folder / "n-3"});
}

TEST_CASE_FIXTURE(own_graph, "what a save that did not end has left is deleted, nothing else") {
  const temporary_folder folder;
  for (const char* name :
       {"m-1.1.ps-0.safetensors.tmp", "m-1.1.ps-0.safetensors", "m-x.1.ps-0.safetensors",
        "m.safetensors", "mm-1.1.ps-0.safetensors", "m-2.1.ps-0.safetensors"})
    testing::write_bytes(folder / name, "x");
  testing::write_bytes(folder / "m-2.index.json", "damaged");
  variable<float> w("w", 0.f);
  session s;
  s.run(initialize_all());
  testing::log_lines lines;
  saver().save(s, folder / "m", 3);
  CHECK(names_in(folder) == std::vector<std::string>{"m-2.1.ps-0.safetensors", "m-2.index.json",
                                                     "m-3.1.localhost-0.safetensors",
                                                     "m-3.index.json", "m-x.1.ps-0.safetensors",
                                                     "m.safetensors", "mm-1.1.ps-0.safetensors"});
}

TEST_CASE_FIXTURE(own_graph, "a full disk keeps the last checkpoint, and damage changes nothing") {
  const temporary_folder folder;
  variable<float, 1000> w("w", ones());
  variable<float> b("b", 1.f);
  session s;
  s.run(initialize_all());
  saver save;
  save.save(s, folder / "m", 1);
  s.run(w.assign_add(1.f), b.assign_add(1.f));
  {
    const testing::file_size_limit full(1000);
    CHECK(error_of([&] { save.save(s, folder / "m", 2); }).starts_with("resource_exhausted: "));
  }
  CHECK(latest_checkpoint(folder.path()) == (folder / "m-1").string());
  CHECK(names_in(folder).size() == 2);

  const auto file = folder / "m-1.1.localhost-0.safetensors";
  std::string bytes = testing::read_bytes(file);
  bytes[bytes.size() - 10] ^= 1;
  testing::write_bytes(file, bytes);
  const std::string e = error_of([&] { save.restore(s, folder / "m-1"); });
  CAPTURE(e);
  CHECK(e.starts_with("data_loss: [safetensors] " + file.string()));
  CHECK(s.run(b) == 2);
  std::string index = testing::read_bytes(folder / "m-1.index.json");
  index[index.size() / 2] ^= 1;
  testing::write_bytes(folder / "m-1.index.json", index);
  CHECK(error_of([&] { save.restore(s, folder / "m-1"); }).starts_with("data_loss: [saver] "));
  testing::log_lines lines;
  CHECK(latest_checkpoint(folder.path()).empty());
}

TEST_CASE_FIXTURE(own_graph, "parameter servers write their own files, below their roots alone") {
  const temporary_folder folder;
  const auto model = [] {
    std::vector<any_variable> all;
    for (int i = 0; i < 3; ++i) {
      auto scope = on(device(str("/job:ps/task:", i % 2)));
      all.push_back(any_variable(str("w", i), {4}, static_cast<float>(i)));
    }
    return all;
  };
  {
    const auto w = model();
    local_cluster c({{"ps", 2}, {"worker", 1}}, {.file_roots = {folder.path().string()}});
    session s(c.target("worker", 0));
    s.run(initialize_all());
    saver save;
    CHECK(save.save(s, folder / "m", 5) == (folder / "m-5").string());
    CHECK(names_in(folder) == std::vector<std::string>{"m-5.1.ps-0.safetensors",
                                                       "m-5.1.ps-1.safetensors", "m-5.index.json"});
    s.run(w[0].assign(any_array(ndarray<float, 4>{9, 9, 9, 9}.array())));
    save.restore(s, folder / "m-5");
    CHECK(s.run(w[0]) == ndarray<float, 4>{0, 0, 0, 0}.array());
    CHECK(s.run(w[1]) == ndarray<float, 4>{1, 1, 1, 1}.array());
  }
  {
    const auto w = model();
    local_cluster c({{"ps", 2}, {"worker", 1}});
    session s(c.target("worker", 0));
    s.run(initialize_all());
    const std::string e = error_of([&] { saver().save(s, folder / "m", 6); });
    CAPTURE(e);
    CHECK(e.starts_with("permission_denied: "));
    CHECK(e.find("--file_root") != std::string::npos);
  }
  // One parameter server has both files' variables.
  std::vector<any_variable> w;
  for (int i = 0; i < 3; ++i) {
    auto scope = on(device("/job:ps/task:0"));
    w.push_back(any_variable(str("w", i), {4}, 0.f));
  }
  local_cluster c({{"ps", 1}, {"worker", 1}}, {.file_roots = {folder.path().string()}});
  session s(c.target("worker", 0));
  saver().restore(s, latest_checkpoint(folder.path()));
  CHECK(s.run(w[2]) == ndarray<float, 4>{2, 2, 2, 2}.array());
  // One damaged file: no task assigns anything.
  s.run(w[0].assign(any_array(ndarray<float, 4>{9, 9, 9, 9}.array())));
  testing::write_bytes(folder / "m-5.1.ps-1.safetensors", "x");
  CHECK(error_of([&] { saver().restore(s, folder / "m-5"); }).starts_with("data_loss: "));
  CHECK(s.run(w[0]) == ndarray<float, 4>{9, 9, 9, 9}.array());
}

TEST_CASE_FIXTURE(own_graph, "errors of save and restore have the line that calls them") {
  const temporary_folder folder;
  const variable<float> w("w", 1.f);
  session s;
  saver save;
  const unsigned line = __LINE__ + 1;
  const std::string unsaved = error_of([&] { save.save(s, folder / "m"); });
  CAPTURE(unsaved);
  CHECK(unsaved.starts_with("failed_precondition: "));
  CHECK(unsaved.find(str("(run at test_saver.cpp:", line, ")")) != unsaved.npos);
  CHECK(unsaved.find("saver.ipp") == unsaved.npos);
  s.run(initialize_all());
  save.save(s, folder / "m");
  for (const auto& f : names_in(folder))
    if (f.ends_with(".safetensors")) testing::write_bytes(folder / f, "x");
  const std::string unread = error_of([&] { save.restore(s, folder / "m"); });
  CAPTURE(unread);
  CHECK(unread.starts_with("data_loss: "));
  CHECK(unread.find("saver.ipp") == unread.npos);
}

TEST_CASE_FIXTURE(own_graph, "what a save that fails leaves is deleted by the next one") {
  const temporary_folder folder;
  const int sockets[] = {listen_socket("localhost:0"), listen_socket("localhost:0")};
  const cluster_spec spec{{"ps", {address_of_socket(sockets[0]), address_of_socket(sockets[1])}}};
  server writes(spec, "ps", 0, {.file_roots = {folder.path().string()}, .listen_fd = sockets[0]});
  server refuses(spec, "ps", 1, {.listen_fd = sockets[1]});
  std::vector<any_variable> w;
  for (int i = 0; i < 2; ++i) {
    auto scope = on(device(str("/job:ps/task:", i)));
    w.push_back(any_variable(str("w", i), {4}, 1.f));
  }
  session s(writes.target());
  s.run(initialize_all());
  saver save;
  for (int i = 0; i < 3; ++i) {
    CHECK(error_of([&] { save.save(s, folder / "m", i); }).starts_with("permission_denied: "));
    // The task that may write has done so, or has been told in time that the other one refuses.
    if (names_in(folder).empty())
      testing::write_bytes(folder / str("m-", i, ".1-7.ps-0.safetensors"), "x");
    const auto left = names_in(folder);
    CAPTURE(join(left, " "));
    REQUIRE(left.size() == 1);
    CHECK(left[0].starts_with(str("m-", i, ".1-")));
    CHECK(left[0].ends_with(".ps-0.safetensors"));
  }
}

TEST_CASE_FIXTURE(own_graph, "neither links nor .. lead a parameter server out of its roots") {
  const temporary_folder folder;
  const std::string root = folder / "root", outside = folder / "outside";
  std::filesystem::create_directories(root);
  std::filesystem::create_directories(outside);
  std::filesystem::create_directory_symlink(outside, root + "/link");
  local_cluster c({{"ps", 1}, {"worker", 1}}, {.file_roots = {root}});
  auto there = on(device("/job:ps"));
  variable<float, 4> w("w", ones());
  session s(c.target("worker", 0));
  s.run(initialize_all());
  saver save;
  save.save(s, root + "/../root/deep/m");
  CHECK(latest_checkpoint(root + "/deep") == root + "/deep/m");
  for (const std::string& path :
       {root + "/../outside/m", root + "/link/m", root + "/deep/../../outside/m"}) {
    CAPTURE(path);
    CHECK(error_of([&] { save.save(s, path); }).starts_with("permission_denied: "));
  }
  CHECK(std::filesystem::is_empty(outside));
  // Nor to be read, wherever an index says that they are.
  write_safetensors(outside + "/x.safetensors", {{"w", ndarray<float, 4>{5, 5, 5, 5}.array()}});
  for (const std::string& path : {outside + "/x.safetensors", root + "/link/x.safetensors"})
    CHECK(error_of([&] { save.restore(s, path); }).starts_with("permission_denied: "));
  std::filesystem::create_symlink(outside + "/x.safetensors", root + "/y.safetensors");
  CHECK_FALSE(error_of([&] { save.restore(s, root + "/y.safetensors"); }).empty());
  CHECK(s.run(w) == ndarray<float, 4>{1, 1, 1, 1});
}

TEST_CASE_FIXTURE(own_graph, "a checkpoint is named after the step that it holds") {
  const temporary_folder folder;
  variable<float> w("w", 1.f);
  variable<std::int64_t> step("step", std::int64_t{0});
  variable<double> rate("rate", 0.1);
  session s;
  s.run(initialize_all());
  saver save({.max_to_keep = 2});
  for (int i = 1; i < 4; ++i) {
    s.run(step.assign_add(i));
    CHECK(save.save(s, folder / "m", step) == folder / str("m-", s.run(step)));
  }
  save.save(s, folder / "m", step);  // again
  CHECK(names_in(folder) ==
        std::vector<std::string>{"m-3.1.localhost-0.safetensors", "m-3.index.json",
                                 "m-6.2.localhost-0.safetensors", "m-6.index.json"});
  s.run(step.assign(0));
  save.restore(s, folder / "m-6");
  CHECK(s.run(step) == 6);
  CHECK(testing::outcome_of([&] { save.save(s, folder / "m", rate); }).code ==
        errc::invalid_argument);
  saver other({.variables = {w}});
  const auto unsaved = testing::outcome_of([&] { other.save(s, folder / "m", step); });
  CHECK(unsaved.code == errc::invalid_argument);
  CHECK(unsaved.says("\"step\""));
}

TEST_CASE_FIXTURE(own_graph, "is_initialized asks, and await_initialized waits") {
  variable<float> w("w", 1.f);
  session s;
  CHECK_FALSE(s.run(is_initialized(w)));
  CHECK(error_of([&] {
          s.run(run_options{.timeout = 20ms}, await_initialized(w));
        }).starts_with("deadline_exceeded"));
  auto waits = s.prepare(await_initialized(w));
  std::thread other([&] { waits(); });
  s.run(initialize_all());
  other.join();
  CHECK(s.run(is_initialized(w)));
  s.reset();
  CHECK_FALSE(s.run(is_initialized(w)));
}

TEST_CASE_FIXTURE(own_graph,
                  "a saver that is killed at any moment leaves the last good checkpoint") {
  const temporary_folder folder;
  const std::string path = testing::program("checkpoints"), where = folder.path().string();
  variable<float, 5000> a("a", zeros());
  variable<float, 3> b("b", zeros());
  auto step = global_step();
  session s;
  std::int64_t last = 0;
  std::uint32_t random = 1;
  for (int round = 0; round < 100; ++round) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      execl(path.c_str(), path.c_str(), "save", where.c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    // Somewhere in the saves after the first ones.
    char line[6];
    for (int n = round % 3; n >= 0; --n) REQUIRE(read(ends[0], line, sizeof line) == sizeof line);
    random = random * 1'664'525u + 1'013'904'223u;
    for (volatile std::uint32_t i = 0; i < random >> 12;) i = i + 1;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    close(ends[0]);

    const std::string newest = latest_checkpoint(where);
    REQUIRE_FALSE(newest.empty());
    saver().restore(s, newest);
    auto [n, x, y] = s.run(step, a, b);
    CHECK(newest == (folder / str("m-", n)).string());
    CHECK(n > last);
    CHECK(std::ranges::all_of(x, [&](float v) { return v == static_cast<float>(n); }));
    CHECK(std::ranges::all_of(y, [&](float v) { return v == static_cast<float>(n); }));
    last = n;
  }
  saver({.max_to_keep = 1}).save(s, where + "/m", last + 1);
  CHECK(names_in(folder).size() == 2);  // nothing is left of the saves that did not end
}

TEST_CASE("values do not pass through the client") {
  const temporary_folder folder;
  const std::string path = folder.path().string();
  testing::child_job job("checkpoints", 1, {"--folder=" + path, "--file_root=" + path}, 1,
                         {"--folder=" + path});
  const std::string line = job.worker(0).line();
  CAPTURE(line);
  double last = 0;
  long grown = -1;
  REQUIRE(std::sscanf(line.c_str(), "%lf %ld", &last, &grown) == 2);
  CHECK(last == 0 + 1 + 2 + 3 + 4 * 1);  // as saved
  CHECK(grown >= 0);
  CHECK(grown < 20'000);
  CHECK(std::filesystem::file_size(folder / "m-1.1.ps-0.safetensors") > 128 << 20);
}

TEST_CASE_FIXTURE(own_graph, "variables of strings are not saved, and named") {
  const temporary_folder folder;
  variable<float> w("w", 1.f);
  variable<std::string> label("label", "text");
  session s;
  s.run(initialize_all());
  saver all;
  CHECK(error_of([&] { all.save(s, folder / "m"); })
            .find("[save_tensors] \"label\" is string(): checkpoints, which are safetensors files, "
                  "have no elements of string") != std::string::npos);
}
