// SPDX-License-Identifier: Apache-2.0
#include <deft/train/saver.hpp>
#include <filesystem>

#include "../data/temporary_folder.hpp"
#include "training.hpp"

using namespace deft;
using testing::error_of;
using testing::names_in;
using testing::own_graph;
using testing::temporary_folder;

TEST_CASE_FIXTURE(own_graph, "a checkpoint is replaced by one of its name, however it is spelled") {
  const temporary_folder folder;
  variable<float> w("w", 1.f);
  session s;
  s.run(initialize_all());
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  std::filesystem::create_directory("deep");
  float value = 1;
  std::vector<std::string> errors;
  for (const std::string path : {"model", "./model", "model", "deep//model", "deep/model"}) {
    s.run(w.assign(value));
    const std::string saved = saver({.max_to_keep = 1}).save(s, path);
    s.run(w.assign(-1.f));
    errors.push_back(error_of([&] { saver().restore(s, saved); }));
    CHECK(s.run(w) == value++);
  }
  std::filesystem::current_path(before);
  CHECK(errors == std::vector<std::string>(5, ""));
  CHECK(names_in(folder) ==
        std::vector<std::string>{"deep", "model.3.localhost-0.safetensors", "model.index.json"});
}

TEST_CASE_FIXTURE(own_graph, "names that a checkpoint cannot have are refused") {
  const temporary_folder folder;
  variable<float> w("w", 1.f);
  session s;
  s.run(initialize_all());
  for (const std::string name : {"w.safetensors", "a\nb"}) {
    const auto o = testing::outcome_of([&] { saver().save(s, folder / name); });
    CHECK(o.code == errc::invalid_argument);
    CHECK(o.says("cannot be the name of a checkpoint"));
  }
  CHECK(saver().save(s, folder / "w.safetensors", 1).ends_with("w.safetensors-1"));
  for (const std::string name : {"", "x\ny"}) {
    const auto o = testing::outcome_of([&] { saver({.named = {{name, w}}}); });
    CHECK(o.code == errc::invalid_argument);
    CHECK(o.says("cannot be the name of a tensor in a file"));
  }
}
