// SPDX-License-Identifier: Apache-2.0
#include <deft/core/crc32c.hpp>
#include <deft/core/safetensors.hpp>
#include <deft/train/checkpoint_index.hpp>
#include <deft/train/saver.hpp>
#include <filesystem>
#include <thread>

#include "../data/temporary_folder.hpp"
#include "training.hpp"

using namespace deft;
using namespace deft::ext;
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

namespace {

/// Writes an index as a saver does: `inner` with its checksum.
void write_index_text(const std::string& path, const std::string& inner) {
  testing::write_bytes(path + ".index.json",
                       str("{\"crc32c\":", crc32c(inner), ",\"index\":", inner, "}\n"));
}
/// The index of a checkpoint of "w", float(), whose value is in `file`.
std::string index_of_w(const std::string& base, const std::string& file, int sequence = 0) {
  return str("{\"base\":\"", base, "\",\"sequence\":", sequence,
             ",\"seconds\":1700000000,\"generation\":1,\"tensors\":{\"w\":{\"file\":\"", file,
             "\",\"dtype\":1,\"shape\":[]}}}");
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "an index without what later versions write is read") {
  static_assert(static_cast<int>(dtype::float32) == 1);
  const temporary_folder folder;
  write_safetensors(folder / "m-7.1.ps-0.safetensors", {{"w", any_array::scalar(2.5f)}});
  write_index_text(folder / "m-7", index_of_w("m", "m-7.1.ps-0.safetensors"));
  write_safetensors(folder / "m--3.1.ps-0.safetensors", {{"w", any_array::scalar(1.f)}});
  write_index_text(folder / "m--3", index_of_w("m", "m--3.1.ps-0.safetensors", 4));
  variable<float> w("w", 0.f);
  session s;
  saver().restore(s, folder / "m-7");
  CHECK(s.run(w) == 2.5f);
  CHECK(latest_checkpoint(folder.path(), "m") == (folder / "m--3").string());
}

TEST_CASE_FIXTURE(own_graph, "an index is refused if it names what is not its own, or no numbers") {
  const temporary_folder folder;
  const std::string inside = folder / "in";
  std::filesystem::create_directories(inside);
  const std::string outside = folder / "other.1.ps-0.safetensors";
  const auto make_files = [&] {
    write_safetensors(outside, {{"w", any_array::scalar(9.f)}});
    for (const char* name : {"/m-2.1.ps-0.safetensors", "/notes.txt", "/m-1.1.ps-0.safetensors"})
      write_safetensors(inside + name, {{"w", any_array::scalar(9.f)}});
  };
  make_files();
  variable<float> w("w", 0.f);
  session s;
  s.run(initialize_all());
  const std::string own = "m-1.1.ps-0.safetensors";
  std::string inner;
  SUBCASE("above it") { inner = index_of_w("m", "../other.1.ps-0.safetensors"); }
  SUBCASE("anywhere") { inner = index_of_w("m", outside); }
  SUBCASE("below it") { inner = index_of_w("m", "./m-1.1.ps-0.safetensors"); }
  SUBCASE("of another checkpoint") { inner = index_of_w("m", "m-2.1.ps-0.safetensors"); }
  SUBCASE("of nobody") { inner = index_of_w("m", "notes.txt"); }
  SUBCASE("no name") { inner = index_of_w("m", ""); }
  SUBCASE("dots") { inner = index_of_w("m", ".."); }
  SUBCASE("cut short by a null") {
    inner = index_of_w("m", "m-1.1.ps-0.safetensors\\u0000.1.ps-0.safetensors");
  }
  SUBCASE("another base") { inner = index_of_w("other", own); }
  SUBCASE("a base with a directory") { inner = index_of_w("../in/m", own); }
  SUBCASE("an index that is no object") { inner = "[1,2]"; }
  SUBCASE("no next number") {
    inner = index_of_w("m", own);
    inner.replace(inner.find(":1,\"tensors"), 2, ":9223372036854775807");
  }
  SUBCASE("a negative extent") {
    inner = index_of_w("m", own);
    inner.replace(inner.find("[]"), 2, "[-1]");
  }
  SUBCASE("too many axes") {
    inner = index_of_w("m", own);
    inner.replace(inner.find("[]"), 2, "[1,1,1,1,1,1,1,1,1,1]");
  }
  CAPTURE(inner);
  write_index_text(inside + "/m-1", inner);
  const auto read = testing::outcome_of([&] { saver().restore(s, inside + "/m-1"); });
  CHECK(read.code == errc::data_loss);
  CHECK(read.says("m-1.index.json"));
  testing::log_lines lines;
  CHECK(latest_checkpoint(inside).empty());
  saver save({.max_to_keep = 1});
  for (int step : {3, 4, 5}) save.save(s, inside + "/m", step);
  save.save(s, inside + "/m", 1);  // replaces the index
  CHECK(std::filesystem::exists(outside));
  CHECK(std::filesystem::exists(inside + "/notes.txt"));
  CHECK(s.run(w) == 0);
}

TEST_CASE_FIXTURE(own_graph, "a directory of a model in several files has no checkpoints") {
  const temporary_folder folder;
  write_safetensors(folder / "model.safetensors", {{"w", any_array::scalar(9.f)}});
  testing::write_bytes(folder / "model.safetensors.index.json", "{}");
  variable<float> w("w", 0.f);
  session s;
  s.run(initialize_all());
  testing::log_lines lines;
  CHECK(latest_checkpoint(folder.path()).empty());
  saver({.max_to_keep = 1}).save(s, folder / "m");
  CHECK(lines.take().empty());
  CHECK(names_in(folder).size() == 4);
}

TEST_CASE_FIXTURE(own_graph, "all checkpoints of a saver count, whatever their names and folders") {
  const temporary_folder folder;
  variable<float> w("w", 0.f);
  session s;
  s.run(initialize_all());
  saver save({.max_to_keep = 2});
  for (const char* name : {"s1", "s2", "deep/s3", "s2", "s1"}) save.save(s, folder / name);
  CHECK(checkpoints_in(folder.path()) == std::vector<std::string>{folder / "s2", folder / "s1"});
  CHECK(checkpoints_in(folder / "deep").empty());
  // Those of a name that were there before count, too; those of other names are not this saver's.
  saver later({.max_to_keep = 2});
  later.save(s, folder / "s1", 1);
  later.save(s, folder / "s1", 2);
  CHECK(checkpoints_in(folder.path()) ==
        std::vector<std::string>{folder / "s2", folder / "s1-1", folder / "s1-2"});
}

TEST_CASE_FIXTURE(own_graph, "a checkpoint whose files are gone or cut off is passed over") {
  const temporary_folder folder;
  variable<float> w("w", 1.f);
  session s;
  s.run(initialize_all());
  saver save;
  for (int step : {1, 2, 3}) save.save(s, folder / "m", step);
  std::filesystem::remove(folder / "m-3.1.localhost-0.safetensors");
  std::filesystem::resize_file(folder / "m-2.1.localhost-0.safetensors", 20);
  testing::log_lines lines;
  CHECK(latest_checkpoint(folder.path()) == (folder / "m-1").string());
  CHECK(checkpoints_in(folder.path()) == std::vector<std::string>{folder / "m-1"});
  const std::string text = join(lines.take(), "\n");
  CHECK(text.find("m-3 is passed over: ") != text.npos);
  CHECK(text.find("m-2 is passed over: ") != text.npos);
  CHECK(testing::outcome_of([&] { save.restore(s, folder / "m-3"); }).code == errc::not_found);
}

TEST_CASE_FIXTURE(own_graph, "no byte of a checkpoint's header can be changed unnoticed") {
  const temporary_folder folder;
  variable<float> w("w", 1.f);
  session s;
  s.run(initialize_all());
  saver save;
  save.save(s, folder / "m");
  const auto file = folder / "m.1.localhost-0.safetensors";
  const std::string bytes = testing::read_bytes(file);
  testing::log_lines lines;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    CAPTURE(i);
    std::string changed = bytes;
    changed[i] ^= 1;
    testing::write_bytes(file, changed);
    CHECK(testing::outcome_of([&] { save.restore(s, folder / "m"); }).code == errc::data_loss);
  }
  CHECK(latest_checkpoint(folder.path()).empty() == (bytes.size() == 0));
  testing::write_bytes(file, bytes);
  save.restore(s, folder / "m");
}

TEST_CASE_FIXTURE(own_graph, "the latest checkpoint of the current directory, and of none") {
  const temporary_folder folder;
  variable<float> w("w", 1.f);
  session s;
  s.run(initialize_all());
  saver save;
  save.save(s, folder / "model", 3);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::string here = latest_checkpoint("");
  save.save(s, "model", 4);
  const std::string later = latest_checkpoint("");
  save.restore(s, later);
  std::filesystem::current_path(before);
  CHECK(here == "./model-3");
  CHECK(later == "./model-4");
  CHECK(latest_checkpoint(folder / "none").empty());
  const auto nothing =
      testing::outcome_of([&] { save.restore(s, latest_checkpoint(folder / "none")); });
  CHECK(nothing.says(str(", as \"", (folder / "none").string(), "\" had")));
  const auto no_directory =
      testing::outcome_of([&] { latest_checkpoint(folder / "model-3.index.json"); });
  CHECK(no_directory.code == errc::not_found);
  CHECK(no_directory.says("[saver] cannot read the directory"));
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
  CAPTURE(join(left, " "));
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

TEST_CASE_FIXTURE(own_graph, "half variables are saved as they are, and restored from any floats") {
  const temporary_folder folder;
  variable<bfloat16, 2> b("b", 1.5f);
  variable<float16, 2> h("h", 0.1f);
  session s;
  s.run(initialize_all());
  const std::string path = saver().save(s, folder / "m");
  s.run(b.assign(b * 2.f), h.assign(h * 2.f));
  saver().restore(s, path);
  CHECK(s.run(b) == ndarray<bfloat16, 2>{1.5f, 1.5f});
  CHECK(s.run(h) == ndarray<float16, 2>{0.1f, 0.1f});
  const std::string other = folder / "other.safetensors";
  write_safetensors(other, {{"b", ndarray<float, 2>{1.00390625f, 3.1415927f}.array()},
                            {"h", ndarray<bfloat16, 2>{0.5f, 65536.f}.array()}});
  saver().restore(s, other);
  CHECK(s.run(b) == ndarray<bfloat16, 2>{1.f, 3.140625f});
  CHECK(s.run(h)(0) == 0.5f);
  CHECK(std::isinf(static_cast<float>(s.run(h)(1))));
  write_safetensors(
      other, {{"b", ndarray<std::int32_t, 2>{1, 2}.array()}, {"h", ndarray<float16, 2>().array()}});
  CHECK(error_of([&] {
          saver().restore(s, other);
        }).find("\"b\" is bfloat16(2), and int32(2) in the checkpoint") != std::string::npos);
}

namespace {

/// Runs the program of two jobs, 0 and 1, at the same time, each with a graph of its own.
template <class F>
void run_two_jobs(F program) {
  std::vector<std::string> errors(2);
  {
    std::vector<std::jthread> jobs;
    for (int job = 0; job < 2; ++job)
      jobs.emplace_back([&, job] {
        errors[static_cast<std::size_t>(job)] = error_of([&] {
          graph g;
          auto in = as_default(g);
          program(job);
        });
      });
  }
  CHECK(errors == std::vector<std::string>(2, ""));
}

}  // namespace

TEST_CASE("two jobs may save into one directory, with the step that the checkpoint holds") {
  const temporary_folder folder;
  run_two_jobs([&](int job) {
    variable<float, 3000> w("w", zeros());
    variable<std::int64_t> step("step", std::int64_t{job});
    session s;
    s.run(initialize_all());
    s.run(w.assign_add(static_cast<float>(job)));
    for (int i = 0; i < 15; ++i) {
      saver({.max_to_keep = 100}).save(s, folder / "m", step);
      s.run(w.assign_add(2.f), step.assign_add(2));
    }
  });
  const auto paths = checkpoints_in(folder.path());
  CHECK(paths.size() == 30);
  for (const std::string& path : paths) {
    CAPTURE(path);
    const auto saved = read_safetensors(path + ".1.localhost-0.safetensors");
    const auto step = saved.at("step").item<std::int64_t>();
    CHECK(path.ends_with(str("-", step)));
    CHECK(saved.at("w").data<float>()[2999] == static_cast<float>(step));
  }
  CHECK(names_in(folder).size() == 60);
}

TEST_CASE("two jobs may save into one directory") {
  const temporary_folder folder;
  run_two_jobs([&](int job) {
    variable<float, 3000> w("w", ones());
    session s;
    s.run(initialize_all());
    for (int i = 0; i < 15; ++i) {
      s.run(w.assign_add(1.f));
      saver({.max_to_keep = 100}).save(s, folder / "m", 2 * i + job);
    }
  });
  const auto paths = checkpoints_in(folder.path());
  CHECK(paths.size() == 30);
  for (const std::string& path : paths)
    CHECK(error_of([&] { read_safetensors(path + ".1.localhost-0.safetensors"); }) == "");
  CHECK(names_in(folder).size() == 60);
}

TEST_CASE("of two jobs that save one step at the same time, one's checkpoint stays, whole") {
  const temporary_folder folder;
  run_two_jobs([&](int job) {
    std::vector<any_variable> w;
    for (int task = 0; task < 2; ++task) {
      auto scope = on(device(str("/job:ps/task:", task)));
      w.push_back(any_variable(str("w", task), {3000}, static_cast<float>(job)));
    }
    local_cluster c({{"ps", 2}, {"worker", 1}}, {.file_roots = {folder.path().string()}});
    session s(c.target("worker", 0));
    s.run(initialize_all());
    for (int i = 0; i < 15; ++i) saver().save(s, folder / "m", 1);
  });
  const auto index = detail::read_index(folder / "m-1");
  std::vector<float> jobs;
  for (const auto& [name, t] : index.tensors) {
    const auto saved = read_safetensors(folder / t.file);
    jobs.push_back(saved.at(name).data<float>()[2999]);
  }
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0] == jobs[1]);
}
