// SPDX-License-Identifier: Apache-2.0
// tests/data/test_files.cpp: lines and records of files as datasets.
#include <deft/data/files.hpp>
// its own header comes first, to check that it is self-contained
#include <zlib.h>

#include <deft/data/example.hpp>

#include "../testing.hpp"
#include "temporary_folder.hpp"

using namespace deft;
using namespace deft::ext;
using testing::read_bytes;
using testing::write_bytes;
using texts = std::vector<std::string>;

namespace {

texts all_of(const dataset<std::string>& d) {
  texts out;
  for (auto& [text] : d) out.push_back(text);
  return out;
}
void write_gzip(const std::filesystem::path& file, const std::string& bytes) {
  gzFile f = gzopen(file.c_str(), "wb");
  gzwrite(f, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(f);
}
void write_records(const std::string& file, const texts& all) {
  record_writer writer(file);
  for (const auto& r : all) writer.write(r);
}
/// An error of a pass without the folder of the file.
template <class Dataset>
std::string failure(const testing::temporary_folder& dir, const Dataset& d) {
  std::string s = testing::error_of([&] {
    for (auto& e : d) static_cast<void>(e);
  });
  const auto at = s.find(dir.path().string() + "/");
  return at == s.npos ? s : s.erase(at, dir.path().string().size() + 1);
}

}  // namespace

TEST_CASE("lines are read without their ends") {
  testing::temporary_folder dir;
  auto lines = [&](const std::string& bytes) {
    write_bytes(dir / "a", bytes);
    write_gzip(dir / "a.gz", bytes);
    const texts plain = all_of(text_lines(dir / "a"));
    CHECK(all_of(text_lines(dir / "a.gz")) == plain);
    return plain;
  };
  CHECK(lines("") == texts{});
  CHECK(lines("one") == texts{"one"});
  CHECK(lines("one\ntwo\n") == texts{"one", "two"});
  CHECK(lines("one\r\n\r\ntwo\r\n") == texts{"one", "", "two"});
  CHECK(lines("\n\n") == texts{"", ""});
  CHECK(lines("a\rb\n\r") == texts{"a\rb", ""});
  // Longer than what is read at a time, and across it.
  texts many;
  std::string bytes;
  for (std::size_t i = 0; i < 3000; ++i) {
    many.emplace_back(i == 7 ? 3'000'000 : i * 37 % 5000, static_cast<char>('a' + i % 26));
    bytes += many.back() + "\n";
  }
  CHECK(lines(bytes) == many);
}

TEST_CASE("several files follow each other") {
  testing::temporary_folder dir;
  const std::string a = dir / "a", b = dir / "b", c = dir / "c.gz";
  write_bytes(a, "1\n2");
  write_bytes(b, "");
  write_gzip(c, "3\n");
  CHECK(all_of(text_lines({a, b, c})) == texts{"1", "2", "3"});
  CHECK(all_of(text_lines(texts{c, a}).repeat(2)) == texts{"3", "1", "2", "3", "1", "2"});
  CHECK(all_of(text_lines(texts{})) == texts{});
  CHECK(text_lines(texts{}).cardinality() == 0);
  CHECK(text_lines(a).cardinality() == unknown_cardinality);
  CHECK(all_of(from_slices(texts{a, c})
                   .interleave([](const std::string& f) { return text_lines(f).prefetch(1); },
                               2)) == texts{"1", "3", "2"});
}

TEST_CASE("records are read as they were written, and decoded on threads") {
  testing::temporary_folder dir;
  texts all;
  for (int i = 0; i < 300; ++i)
    all.push_back(example().set("label", i).set("x", std::vector<float>{1.f, 2.f}).encode());
  write_records(dir / "a", texts(all.begin(), all.begin() + 200));
  write_records(dir / "b.gz", texts(all.begin() + 200, all.end()));
  const auto both = records({dir / "a", dir / "b.gz"});
  CHECK(all_of(both) == all);

  const auto decode = [](const example_view& e) {
    ndarray<float, 2> x;
    e.read("x", std::span(x.begin(), x.end()));
    return std::tuple(std::move(x), e.one_integer("label"));
  };
  for (const int threads : {0, 3}) {
    std::int64_t next = 0;
    for (auto& [x, label] :
         examples({dir / "a", dir / "b.gz"}, decode, {.threads = threads}).batch(50).prefetch(2))
      for (std::int64_t i = 0; i < label.size(); ++i) {
        CHECK(label(i) == next++);
        CHECK(x(i, 1) == 2);
      }
    CHECK(next == 300);
  }
}

TEST_CASE("an example that cannot be decoded is named with its file and offset") {
  testing::temporary_folder dir;
  const std::string good = example().set("label", 1).encode();
  const std::string place = str(" (the record at offset ", good.size() + 16, " of r)");
  const auto label = [](const example_view& e) { return e.one_integer("label"); };
  const auto second_is = [&](const std::string& bytes) {
    write_records(dir / "r", {good, bytes, good});
    const std::string message = failure(dir, examples(dir / "r", label));
    CHECK(failure(dir, examples(dir / "r", label, {.threads = 2}).prefetch(1)) == message);
    return message;
  };
  CHECK(second_is(example().set("level", 1).encode()) ==
        "not_found: [example] it has no feature \"label\"; it has level" + place);
  CHECK(second_is(example().set("label", 1.5).encode()) ==
        "invalid_argument: [example] feature \"label\" has floats, not integers" + place);
  const std::string cut = second_is(good.substr(0, good.size() - 1));
  CHECK(cut.starts_with("data_loss: [example] the message is malformed: "));
  CHECK(cut.ends_with(place));

  write_records(dir / "s", {good});
  CHECK(failure(dir, examples(dir / "s", [](const example_view&) -> int {
                  fail(errc::out_of_range, "too dark");
                })) == "out_of_range: too dark (the record at offset 0 of s)");
}

TEST_CASE("missing, corrupt and truncated files are named, with the place in them") {
  testing::temporary_folder dir;
  CHECK(failure(dir, text_lines(dir / "none")) == "not_found: [text_lines] there is no file none");
  CHECK(failure(dir, records(dir / "none")) == "not_found: [record_reader] there is no file none");
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += str(i * 7919 % 10'007, "\n");
  write_gzip(dir / "a.gz", bytes);
  const std::string whole = read_bytes(dir / "a.gz");
  write_bytes(dir / "a.gz", whole.substr(0, whole.size() / 2));
  CHECK(failure(dir, text_lines(dir / "a.gz")).starts_with("data_loss: [text_lines] a.gz: line "));
  CHECK(failure(dir, text_lines(dir / "a.gz")).ends_with(": its compressed data is cut off"));
  std::string flipped = whole;
  flipped[flipped.size() - 6] ^= 1;  // the checksum at its end
  write_bytes(dir / "a.gz", flipped);
  CHECK(failure(dir, text_lines(dir / "a.gz").prefetch(2))
            .starts_with("data_loss: [text_lines] a.gz: line "));

  write_records(dir / "r", {"hello", "world"});
  std::string damaged = read_bytes(dir / "r");
  damaged.back() ^= 1;
  write_bytes(dir / "r", damaged);
  CHECK(failure(dir, records(dir / "r").prefetch(2)) ==
        "data_loss: [record_reader] r: the record at offset 21: the checksum of its bytes is "
        "wrong");
}
