// SPDX-License-Identifier: Apache-2.0
// tests/data/test_npz.cpp: .npz files, written and read, and damaged ones.
#include <deft/data/npz.hpp>
// its own header comes first, to check that it is self-contained
#include <cstring>
#include <deft/core/log.hpp>
#include <deft/core/ndarray.hpp>

#include "../testing.hpp"
#include "temporary_folder.hpp"

using namespace deft;
using testing::read_bytes;
using testing::write_bytes;

namespace {

std::map<std::string, any_array> some_arrays() {
  return {{"layer/w", ndarray<float, 2, 3>{1, 2, 3, 4, 5, 6}.array()},
          {"flags", ndarray<bool, 3>{true, false, true}.array()},
          {"none", any_array(dtype::float64, dims{0, 4})},
          {"größe", any_array::scalar(std::int64_t{-7})}};
}

std::string failure(const testing::temporary_folder& dir, const std::string& bytes) {
  write_bytes(dir / "a.npz", bytes);
  std::string s = testing::error_of([&] { read_npz(dir / "a.npz"); });
  const auto at = s.find(dir.path().string() + "/");
  return at == s.npos ? s : s.erase(at, dir.path().string().size() + 1);
}

template <class T>
void put(std::string& to, std::size_t at, T v) {
  std::memcpy(to.data() + at, &v, sizeof v);
}
/// Where the list of members of a file that deft wrote begins: what its record of ZIP64 says.
std::size_t list_of(const std::string& bytes) {
  std::uint64_t at = 0;
  std::memcpy(&at, bytes.data() + bytes.size() - 22 - 20 - 8, sizeof at);
  return static_cast<std::size_t>(at);
}

}  // namespace

TEST_CASE("arrays are read back by name as they were written") {
  const testing::temporary_folder dir;
  const std::string path = dir / "a.npz";
  for (const bool compressed : {false, true}) {
    write_npz(path, some_arrays(), {.compressed = compressed});
    CHECK(read_npz(path) == some_arrays());
    write_npz(path, {}, {.compressed = compressed});
    CHECK(read_npz(path).empty());
  }
  any_array large(dtype::int32, dims{1'000'003});  // more than a buffer
  for (int i = 0; i < 1'000'003; ++i) large.mutable_data<std::int32_t>()[i] = i % 1000 * (i % 7);
  write_npz(path, {{"large", large}, {"small", any_array::scalar(1.f)}}, {.compressed = true});
  CHECK(read_bytes(path).size() < large.bytes() / 2);
  CHECK(read_npz(path).at("large") == large);
  CHECK(testing::names_in(dir) == std::vector<std::string>{"a.npz"});
}

TEST_CASE("members without numbers of ZIP64, and a comment at the end, are read") {
  const testing::temporary_folder dir;
  // Of Python's zipfile, with numpy.float32(1) in x.npy.
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': ()}\n";
  const std::string npy = std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) +
                          '\0' + header + std::string("\0\0\x80\x3f", 4);
  std::string zip("PK\3\4\x14\0\0\0\0\0\0\0\x21\0", 14);
  const auto sizes = [&](std::string& to) {
    to.append("\0\0\0\0", 4);  // the checksum, below
    for (int i = 0; i < 2; ++i) to += {static_cast<char>(npy.size()), 0, 0, 0};
    to.append("\5\0\0\0", 4);
  };
  sizes(zip);
  zip += "x.npy" + npy;
  const std::size_t list = zip.size();
  zip.append("PK\1\2\x14\0\x14\0\0\0\0\0\0\0\x21\0", 16);
  sizes(zip);
  zip += std::string(14, '\0') + "x.npy";
  const std::size_t end = zip.size();
  zip.append("PK\5\6\0\0\0\0\1\0\1\0", 12);
  zip += {static_cast<char>(end - list), 0, 0, 0, static_cast<char>(list), 0, 0, 0, 7, 0};
  zip += "comment";
  CHECK(failure(dir, zip).ends_with("its checksum is wrong"));
  std::uint32_t crc = ~0u;  // CRC-32, bit by bit
  for (const char c : npy) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  put(zip, list + 16, ~crc);
  CHECK(failure(dir, zip).empty());
  CHECK(read_npz(dir / "a.npz").at("x").item<float>() == 1);
}

TEST_CASE("a file that is cut off, or has one bit flipped, is refused or the same") {
  const testing::temporary_folder dir;
  logging::set_sink([](logging::level, const std::string&) {});  // of members of other names
  for (const bool compressed : {false, true}) {
    write_npz(dir / "a.npz", {{"x", ndarray<float, 4>{1, 2, 3, 4}.array()}},
              {.compressed = compressed});
    const auto whole = read_npz(dir / "a.npz");
    const std::string bytes = read_bytes(dir / "a.npz");
    for (std::size_t n = 0; n < bytes.size(); ++n)
      CHECK(failure(dir, bytes.substr(0, n)).starts_with("data_loss: [read_npz] a.npz: "));
    for (std::size_t i = 0; i < 8 * bytes.size(); ++i) {
      std::string flipped = bytes;
      flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << i % 8));
      CAPTURE(i);
      const std::string e = failure(dir, flipped);
      if (e.empty()) {  // versions, times, names
        const auto read = read_npz(dir / "a.npz");
        if (!read.empty()) CHECK(read.begin()->second == whole.at("x"));
      } else {
        CHECK((e.starts_with("data_loss: [read_npz] a.npz: ") ||
               e.starts_with("unimplemented: [read_npz] a.npz: ")));
      }
    }
  }
  logging::set_sink(nullptr);
}

TEST_CASE("what is wrong with a member is said with its name") {
  const testing::temporary_folder dir;
  write_npz(dir / "a.npz", {{"x", any_array::scalar(1.f)}});
  const std::string bytes = read_bytes(dir / "a.npz");
  const std::size_t list = list_of(bytes), extra = list + 46 + 5 + 4;
  const auto with = [&](std::size_t at, auto v) {
    std::string changed = bytes;
    put(changed, at, v);
    return failure(dir, changed);
  };
  const std::string begin = "data_loss: [read_npz] a.npz: ";
  CHECK(with(list, 0) == begin + "its list of members is not sound");
  CHECK(with(list + 8, std::uint16_t{1}) ==
        "unimplemented: [read_npz] a.npz: its member \"x.npy\" is encrypted");
  CHECK(with(list + 10, std::uint16_t{12}) ==
        "unimplemented: [read_npz] a.npz: its member \"x.npy\" is compressed by method 12; "
        "expected 0 "
        "(stored) or 8 (deflated)");
  CHECK(with(list + 30, std::uint16_t{0xffff}) ==
        begin + "its list of members goes beyond its end");
  CHECK(with(extra - 4, std::uint16_t{2}) ==
        begin + "its member \"x.npy\" lacks a number of ZIP64");
  CHECK(with(extra, ~std::uint64_t{0}) == begin + "its member \"x.npy\" has two sizes");
  CHECK(with(extra + 16, ~std::uint64_t{0}) == begin + "its member \"x.npy\" goes beyond its end");
  CHECK(with(extra + 16, std::uint64_t{1}) == begin + "its member \"x.npy\" is not there");
  CHECK(with(list + 16, 0) == begin + "x.npy: at offset 132: its checksum is wrong");
  std::string zeros(18, '\0');
  CHECK(failure(dir, bytes + zeros).ends_with("it has no record at its end, as ZIP archives do"));
  std::string twice = bytes;
  twice.replace(twice.find("PK\1\2"), 4, "PK\1\3");
  CHECK(failure(dir, twice) == begin + "its list of members is not sound");
  CHECK(testing::error_of([&] { read_npz(dir / "none"); }).starts_with("not_found: "));
}

TEST_CASE("an array that deft cannot have is left out") {
  const testing::temporary_folder dir;
  write_npz(dir / "a.npz", {{"x", any_array::scalar(1.f)}, {"y", any_array::scalar(2.f)}});
  std::string bytes = read_bytes(dir / "a.npz");
  static std::string logged;
  logging::set_sink([](logging::level, const std::string& line) { logged += line; });
  bytes.replace(bytes.find("<f4"), 3, "<c8");
  CHECK(failure(dir, bytes).empty());
  CHECK(logged.find("x.npy has elements of type <c8") != std::string::npos);
  CHECK(read_npz(dir / "a.npz").size() == 1);
  bytes.replace(bytes.find("<f4"), 3, "<c8");
  CHECK(failure(dir, bytes).starts_with("unimplemented: [read_npz] a.npz: x.npy has elements"));
  logging::set_sink(nullptr);
}

TEST_CASE("what cannot be written is refused before the file is") {
  const testing::temporary_folder dir;
  const std::string path = dir / "a.npz";
  const auto refusal = [&](const std::string& name, const any_array& a) {
    const std::string e = testing::error_of([&] { write_npz(path, {{name, a}}); });
    CHECK(testing::names_in(dir).empty());
    return e;
  };
  CHECK(refusal("", any_array::scalar(1)).starts_with("invalid_argument: [write_npz] " + path));
  CHECK(refusal("\xff", any_array::scalar(1)).ends_with("too long, or not UTF-8"));
  CHECK(refusal("x", {}) == "invalid_argument: [write_npz] there is no array for " + path);
  CHECK(refusal("x", any_array::scalar("text")).find("cannot hold string") != std::string::npos);
  CHECK(testing::error_of([] { write_npz("/nowhere/a.npz", {}); }).starts_with("not_found: "));
}
