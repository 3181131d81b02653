// SPDX-License-Identifier: Apache-2.0
#include <deft/core/crc32c.hpp>
#include <deft/train/checkpoint_index.hpp>
#include <deft/train/saver.hpp>
#include <filesystem>
#include <thread>

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
  for (const std::string name : {"w.safetensors", "a\nb", "mod\xe8le"}) {
    const auto o = testing::outcome_of([&] { saver().save(s, folder / name); });
    CHECK(o.code == errc::invalid_argument);
    CHECK(o.says("cannot be the name of a checkpoint"));
  }
  CHECK(saver().save(s, folder / "w.safetensors", 1).ends_with("w.safetensors-1"));
  CHECK(testing::names_in(folder).size() == 2);
  const temporary_folder latin_1;
  std::filesystem::create_directory(latin_1 / "mod\xe8le");  // a folder's name is not in the index
  const std::string saved = saver().save(s, latin_1 / "mod\xe8le/m", 2);
  CHECK(latest_checkpoint(latin_1 / "mod\xe8le") == saved);
  CHECK(error_of([&] { saver().restore(s, saved); }).empty());
  for (const std::string name : {"", "x\ny", "f\xfcr"}) {
    const auto o = testing::outcome_of([&] { saver({.named = {{name, w}}}); });
    CHECK(o.code == errc::invalid_argument);
    CHECK(o.says("cannot be the name of a tensor in a file"));
  }
}

TEST_CASE_FIXTURE(own_graph, "an index in which a key occurs twice is refused") {
  const temporary_folder folder;
  variable<float> w("w", 1.f);
  session s;
  s.run(initialize_all());
  const std::string path = saver().save(s, folder / "m");
  const std::string file = path + ".index.json";
  std::string text = testing::read_bytes(file);
  const std::string before = ",\"index\":", twice = "\"base\":\"m\"";
  const auto inner = text.find(before) + before.size();
  text.insert(text.find(twice), twice + ",");
  const std::string body = text.substr(inner, text.size() - inner - 2);
  testing::write_bytes(file, str("{\"crc32c\":", crc32c(body), before, body, "}\n"));
  CHECK(error_of([&] {
          saver().restore(s, path);
        }).starts_with("data_loss: [saver] " + file + ": the index has the key \"base\" twice"));
}

TEST_CASE("an index that is not sound is data_loss") {
  const temporary_folder folder;
  const std::string path = folder / "m", before = ",\"index\":";
  const auto with = [](const std::string& tensor) {
    return R"({"base":"m","sequence":0,"seconds":0,"generation":1,"tensors":{"w":)" + tensor + "}}";
  };
  for (const std::string& body :
       {std::string("{}"), std::string("[]"), std::string("1"), with("1"), with("{}"),
        with(R"({"file":"f","dtype":1})"), with(R"({"file":1,"dtype":1,"shape":[]})"),
        with(R"({"file":"f","dtype":99,"shape":[]})"),
        with(R"({"file":"f","dtype":1,"shape":[-1]})"),
        with(R"({"file":"f","dtype":1,"shape":[4611686018427387904,4]})"),
        with(R"({"file":"f","dtype":1,"shape":[1,1,1,1,1,1,1,1,1]})")}) {
    CAPTURE(body);
    testing::write_bytes(path + ".index.json",
                         str("{\"crc32c\":", crc32c(body), before, body, "}\n"));
    testing::log_lines lines;
    CHECK(latest_checkpoint(folder.path()).empty());
    CHECK(error_of([&] { detail::read_index(path); }).starts_with("data_loss: [saver] " + path));
  }
}

TEST_CASE_FIXTURE(own_graph, "the files of a save that goes on are no leftovers") {
  const temporary_folder folder;
  variable<float> w("w", 1.f);
  session s;
  s.run(initialize_all());
  // Of another process, which has written a file and writes the next; and of one that was killed.
  std::optional<detail::index_writer> other(folder / "m-7");
  testing::write_bytes(folder / "m-7.1.ps-0.safetensors", "x");
  testing::write_bytes(folder / "m-7.1.ps-1.safetensors.1-0.tmp", "x");
  testing::write_bytes(folder / "m-8.1.ps-0.safetensors", "x");
  testing::write_bytes(folder / "m-8.index.json.1-0.tmp", "x");
  testing::write_bytes(folder / "m-8.1.ps-1.safetensors.1-0.tmp", "x");
  file_writer next(file_roots::anywhere(), folder / "m-9.1.ps-0.safetensors");
  next.write(0, "x", 1);
  saver().save(s, folder / "m", 1);
  std::vector<std::string> left;
  for (const auto& name : names_in(folder))
    if (name.starts_with("m-7.1") || name.starts_with("m-8") || name.starts_with("m-9"))
      left.emplace_back(completed_name(name));
  CHECK(left == std::vector<std::string>{"m-7.1.ps-0.safetensors", "m-7.1.ps-1.safetensors",
                                         "m-9.1.ps-0.safetensors"});
  next.commit();
  other.reset();
  saver().save(s, folder / "m", 1);
  CHECK(names_in(folder) ==
        std::vector<std::string>{"m-1.2.localhost-0.safetensors", "m-1.index.json"});
}

TEST_CASE_FIXTURE(own_graph, "a checkpoint may be a link, and files of F16 are restored as float") {
  const temporary_folder folder;
  variable<float, 2> w("w", ones());
  session s;
  s.run(initialize_all());
  std::filesystem::create_directories(folder / "blobs");
  const std::string path = saver().save(s, folder / "blobs/m");
  std::filesystem::create_symlink("m.index.json", folder / "blobs/best.index.json");
  std::filesystem::create_symlink("blobs/m.index.json", folder / "m.index.json");
  CHECK(checkpoints_in(folder / "blobs") == std::vector<std::string>{path});  // "best" is no other
  CHECK(latest_checkpoint(folder.path()) == (folder / "m").string());
  s.run(w.assign(4.f * w));
  saver().restore(s, folder / "m");
  CHECK(s.run(w) == ndarray<float, 2>{1, 1});
  s.run(w.assign(4.f * w));
  saver().save(s, folder / "m");  // in the place of the link, whose checkpoint stays
  saver().restore(s, path);
  CHECK(s.run(w) == ndarray<float, 2>{1, 1});
  saver().restore(s, folder / "m");
  CHECK(s.run(w) == ndarray<float, 2>{4, 4});
  s.run(w.assign(5.f * w));
  saver().restore(s, folder / "blobs/best");
  CHECK(s.run(w) == ndarray<float, 2>{1, 1});

  const std::string header = R"({"w":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
                             R"("x":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[4,5]}})";
  testing::write_bytes(folder / "blobs/hub",
                       str(static_cast<char>(header.size()), std::string(7, '\0'), header,
                           std::string("\0\x3c\1\0x", 5)));
  std::filesystem::create_symlink("blobs/hub", folder / "hub.safetensors");
  saver().restore(s, folder / "hub.safetensors");
  CHECK(s.run(w) == ndarray<float, 2>{1, 0x1p-24f});
  variable<float, 1> x("x", zeros());
  s.run(initialize_all());
  CHECK(error_of([&] {
          saver().restore(s, folder / "hub.safetensors");
        }).find("\"x\" is float(1), and of F8_E4M3 in the checkpoint") != std::string::npos);
}

TEST_CASE("two jobs may save into one directory") {
  const temporary_folder folder;
  std::vector<std::string> errors(2);
  {
    std::vector<std::jthread> jobs;
    for (int job = 0; job < 2; ++job)
      jobs.emplace_back([&, job] {
        errors[static_cast<std::size_t>(job)] = error_of([&] {
          graph g;
          auto in = as_default(g);
          variable<float, 3000> w("w", ones());
          session s;
          s.run(initialize_all());
          for (int i = 0; i < 15; ++i) {
            s.run(w.assign_add(1.f));
            saver({.max_to_keep = 100}).save(s, folder / "m", 2 * i + job);
          }
        });
      });
  }
  CHECK(errors == std::vector<std::string>(2, ""));
  const auto paths = checkpoints_in(folder.path());
  CHECK(paths.size() == 30);
  for (const std::string& path : paths)
    CHECK(error_of([&] { read_safetensors(path + ".1.localhost-0.safetensors"); }) == "");
  CHECK(names_in(folder).size() == 60);
}
