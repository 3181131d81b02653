// SPDX-License-Identifier: Apache-2.0
#include <deft/core/safetensors.hpp>
#include <deft/train/saver.hpp>
#include <filesystem>

#include "../data/temporary_folder.hpp"
#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;
using testing::own_graph;
using testing::temporary_folder;

TEST_CASE_FIXTURE(own_graph, "variables are saved under the names they are given") {
  const temporary_folder folder;
  variable<float> w("w", 1.f), u("u", 2.f);
  session s;
  s.run(initialize_all());
  saver renamed({.variables = {u}, .named = {{"old/w", w}}});
  renamed.save(s, folder / "m");
  s.run(w.assign(7.f), u.assign(7.f));
  renamed.restore(s, folder / "m");
  CHECK(s.run(w) == 1);
  CHECK(s.run(u) == 2);
  CHECK(read_safetensors(folder / "m.1.localhost-0.safetensors").contains("old/w"));
  CHECK(error_of([&] {
          saver({.variables = {u}, .named = {{"u", w}}});
        }) == "invalid_argument: [saver] two variables have the name \"u\"");
}

TEST_CASE_FIXTURE(own_graph, "a variable has one name in a checkpoint") {
  variable<float> v("v", 0.f);
  for (const saver_options& o : {saver_options{.named = {{"a", v}, {"b", v}}},
                                 saver_options{.variables = {v}, .named = {{"other", v}}}}) {
    const auto both = testing::outcome_of([&] { const saver made(o); });
    CAPTURE(both.message);
    CHECK(both.code == errc::invalid_argument);
    CHECK(both.says("variable \"v\" has two names"));
    for (const auto& [name, of] : o.named) CHECK(both.says(str("\"", name, "\"").c_str()));
  }
}

TEST_CASE_FIXTURE(own_graph, "tensors of a file may have their axes in another order") {
  const temporary_folder folder;
  // torch's Linear(3, 2) has a weight of (2, 3).
  write_safetensors(folder / "torch.safetensors",
                    {{"fc.weight", ndarray<float, 2, 3>{1, 2, 3, 4, 5, 6}.array()},
                     {"conv", ndarray<float, 1, 2, 3>{1, 2, 3, 4, 5, 6}.array()}});
  variable<float, 3, 2> w("w", zeros());
  variable<float, 3, 1, 2> k("k", zeros());
  session s;
  s.run(initialize_all());
  const std::map<std::string, any_variable> named{{"fc.weight", w}, {"conv", k}};
  saver torch({.named = named, .transposed = {{"fc.weight", {1, 0}}, {"conv", {2, 0, 1}}}});
  CHECK(torch.compare(folder / "torch.safetensors").restorable.size() == 2);
  torch.restore(s, folder / "torch.safetensors");
  CHECK(s.run(w) == ndarray<float, 3, 2>{1, 4, 2, 5, 3, 6});
  CHECK(s.run(k) == ndarray<float, 3, 1, 2>{1, 4, 2, 5, 3, 6});
  // What is saved is as it was read.
  torch.save(s, folder / "m");
  const auto saved = read_safetensors(folder / "m.1.localhost-0.safetensors");
  CHECK(saved.at("fc.weight") == ndarray<float, 2, 3>{1, 2, 3, 4, 5, 6}.array());
  CHECK(saved.at("conv") == ndarray<float, 1, 2, 3>{1, 2, 3, 4, 5, 6}.array());
  s.run(w.assign(1.f), k.assign(1.f));
  torch.restore(s, folder / "m");
  CHECK(s.run(w) == ndarray<float, 3, 2>{1, 4, 2, 5, 3, 6});

  saver as_it_is({.named = {{"fc.weight", w}}});
  const auto wrong =
      testing::outcome_of([&] { as_it_is.restore(s, folder / "torch.safetensors"); });
  CHECK(wrong.code == errc::invalid_argument);
  CHECK(
      wrong.says("\"fc.weight\" is float(3,2), and float(2,3) in the checkpoint; "
                 "saver_options.transposed"));
  saver twisted({.named = {{"conv", k}}, .transposed = {{"conv", {0, 2, 1}}}});
  CHECK(testing::outcome_of([&] { twisted.restore(s, folder / "torch.safetensors"); })
            .says("\"conv\" is float(3,1,2), transposed by (0,2,1) float(3,2,1), and float(1,2,3) "
                  "in the checkpoint"));
  for (const axes& order : {axes{0, 0}, axes{1}, axes{0, 2}, axes{-1, 0}, axes{0, 1, 2}}) {
    const auto none = testing::outcome_of([&] {
      const saver made({.named = named, .transposed = {{"fc.weight", order}}});
    });
    CAPTURE(none.message);
    CHECK(none.code == errc::invalid_argument);
    CHECK(none.says("no order of the axes of variable \"w\", float(3,2)"));
  }
  CHECK(testing::outcome_of([&] {
          const saver made({.named = named, .transposed = {{"w", {1, 0}}}});
        }).says("no variable is saved under this name"));
  CHECK(testing::outcome_of([&] {
          saver({.transposed = {{"v", {1, 0}}}}).save(s, folder / "v");
        }).says("no variable is saved under this name"));
}

TEST_CASE_FIXTURE(own_graph, "a graph and a checkpoint that do not fit are compared by name") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  write_safetensors(path, {{"w", ndarray<float, 3>{1, 2, 3}.array()},
                           {"b", any_array::scalar(5.f)},
                           {"old", any_array::scalar(1.0)}});
  variable<float, 2> w("w", zeros());
  variable<float> b("b", 0.f), c("c", 0.f);
  session s;
  s.run(initialize_all());
  saver all;
  const checkpoint_comparison found = all.compare(path);
  CHECK(found.restorable == std::vector<std::string>{"b"});
  CHECK(found.missing == std::vector<std::string>{"c"});
  CHECK(found.extra == std::vector<std::string>{"old"});
  CHECK(error_of([&] { all.restore(s, path); }) ==
        "invalid_argument: [saver] " + path +
            " does not fit the variables: \"w\" is float(2), and float(3) in the checkpoint; it "
            "does not have \"c\"; only it has \"old\"");
  saver two({.variables = {b, c}});
  CHECK(error_of([&] { two.restore(s, path); }).starts_with("not_found: [saver] "));
  CHECK(s.run(b) == 0);
  two.restore(s, path, {.partial = true});
  CHECK(s.run(b) == 5);
  saver mapped({.named = {{"b", c}}});
  mapped.restore(s, path);
  CHECK(s.run(c) == 5);
  saver as_doubles({.named = {{"old", c}}});
  CHECK(error_of([&] { as_doubles.restore(s, path, {.partial = true}); }) ==
        "invalid_argument: [saver] " + path +
            " does not fit the variables: \"old\" is float(), and double() in the checkpoint; only "
            "it has \"b\", \"w\"");
  CHECK(s.run(c) == 5);
  CHECK(error_of([&] {
          all.restore(s, folder / "none");
        }).starts_with("not_found: [saver] there is no checkpoint \""));
  const std::string array = folder / "w5.npy";
  write_npy(array, ndarray<float, 2>{1, 2});
  CHECK(error_of([&] { all.restore(s, array); })
            .starts_with("not_found: [saver] there is no checkpoint \"" + array +
                         "\": the file of that name has no index \"" + array +
                         ".index.json\"; read_npy and read_safetensors read files of other kinds"));
}

TEST_CASE_FIXTURE(own_graph,
                  "a model of others in several files is restored by its index or directory") {
  const temporary_folder folder;
  const std::string one = "model-00001-of-00002.safetensors",
                    two = "model-00002-of-00002.safetensors",
                    index = folder / "model.safetensors.index.json";
  write_safetensors(folder / one, {{"fc.weight", ndarray<float, 2, 3>{1, 2, 3, 4, 5, 6}.array()}});
  write_safetensors(folder / two, {{"fc.bias", ndarray<float, 2>{7, 8}.array()}},
                    {.types = {{"fc.bias", "F16"}}});
  testing::write_bytes(
      index, R"({"weight_map": {"fc.weight": ")" + one + R"(", "fc.bias": ")" + two + R"("}})");
  variable<float, 3, 2> kernel("kernel", zeros());
  variable<float, 2> bias("bias", zeros());
  session s;
  saver of_others(
      {.named = {{"fc.weight", kernel}, {"fc.bias", bias}}, .transposed = {{"fc.weight", {1, 0}}}});
  for (const std::string& path : {index, folder.path().string()}) {
    s.run(initialize_all());
    CHECK(of_others.compare(path).restorable == std::vector<std::string>{"fc.bias", "fc.weight"});
    of_others.restore(s, path);
    CHECK(s.run(kernel) == ndarray<float, 3, 2>{1, 4, 2, 5, 3, 6});
    CHECK(s.run(bias) == ndarray<float, 2>{7, 8});
  }
  const auto arrays = of_others.arrays(s);
  CHECK(arrays.at("fc.weight") == read_safetensors(folder.path().string()).at("fc.weight"));
  s.run(bias.assign_add(1.f));
  CHECK(of_others.arrays(s).at("fc.bias") == ndarray<float, 2>{8, 9}.array());
  CHECK(arrays.at("fc.bias") == ndarray<float, 2>{7, 8}.array());
  CHECK(saver().arrays(s).contains("kernel"));
  std::filesystem::remove(index);
  std::filesystem::remove(folder / one);
  std::filesystem::remove(folder / two);
  CHECK(error_of([&] { of_others.restore(s, folder.path().string()); }) ==
        "not_found: [safetensors] " + folder.path().string() + " has no file *.safetensors");
}

TEST_CASE_FIXTURE(own_graph, "names in a file do not forge lines of a log") {
  const temporary_folder folder;
  const std::string name = "x\n04:00:00.000 E worker/0: FAKE \x1b[31m";
  any_array one(dtype::float32, dims{1});
  one.mutable_data<float>()[0] = 1;
  write_safetensors(folder / "m.safetensors", {{name, one}});
  variable<float, 1> a("a", zeros());
  session s;
  const std::string message = error_of([&] { saver().restore(s, folder / "m.safetensors"); });
  CHECK(message.find("\"x\\n04:00:00.000 E worker/0: FAKE \\x1b[31m\"") != std::string::npos);
  CHECK(message.find('\n') == std::string::npos);
}
