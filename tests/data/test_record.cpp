// SPDX-License-Identifier: Apache-2.0
#include <deft/data/record.hpp>

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <deft/core/crc32c.hpp>
#include <deft/core/file.hpp>
#include <deft/data/npy.hpp>
#include <filesystem>
#include <random>
#include <vector>

#include "../testing.hpp"
#include "temporary_folder.hpp"

using namespace deft;
using namespace deft::ext;
using testing::read_bytes;
using testing::write_bytes;

namespace {

std::vector<std::string> records_of(const std::string& file) {
  record_reader reader(file);
  std::vector<std::string> all;
  while (const auto record = reader.next()) all.emplace_back(*record);
  CHECK(!reader.next());
  return all;
}

/// What reading `file` throws, without its folder.
std::string failure(const testing::temporary_folder& dir, const std::string& file) {
  std::string s = testing::error_of([&] { records_of(dir / file); });
  const auto at = s.find(dir.path().string() + "/");
  return at == s.npos ? s : s.erase(at, dir.path().string().size() + 1);
}

}  // namespace

TEST_CASE("records are read back as they were written, plain and compressed") {
  testing::temporary_folder dir;
  std::vector<std::string> records{"", "a", std::string(3, '\0'), std::string(5'000'000, 'x')};
  for (std::size_t i = 0; i < 1000; ++i) records.emplace_back(i * 37 % 5000, static_cast<char>(i));
  for (const std::string name : {"a", "a.gz"}) {
    CAPTURE(name);
    record_writer writer(dir / name);
    for (const auto& r : records) writer.write(r);
    writer.close();
    CHECK(records_of(dir / name) == records);
    CHECK(testing::error_of([&] { writer.write("more"); }).starts_with("failed_precondition"));
  }
  CHECK(read_bytes(dir / "a.gz").substr(0, 2) == "\x1f\x8b");
  write_bytes(dir / "empty", "");
  CHECK(records_of(dir / "empty").empty());
}

TEST_CASE("a record is its length, its bytes and a checksum of each") {
  testing::temporary_folder dir;
  {
    record_writer writer(dir / "a");
    writer.write("hello");
  }
  // As TensorFlow 2.21 writes it.
  CHECK(read_bytes(dir / "a") == std::string("\x05\0\0\0\0\0\0\0\xea\xb2\x04\x3e"
                                             "hello\xbb\x1f\x1c\x19",
                                             21));
}

TEST_CASE("a plain file whose first length begins as gzip does is read as it is") {
  testing::temporary_folder dir;
  for (const std::size_t size : {0x8b1f, 0x8b1f + 65536}) {
    const std::vector<std::string> records{std::string(size, 'x'), "more"};
    for (const std::string name : {"a", "a.gz"}) {
      record_writer writer(dir / name);
      for (const auto& r : records) writer.write(r);
      writer.close();
      CHECK(records_of(dir / name) == records);
    }
  }
}

TEST_CASE("processes that are started inherit no file") {
  testing::temporary_folder dir;
  record_writer plain(dir / "a"), compressed(dir / "a.gz");
  write_npy(dir / "b.npy", any_array::scalar(1.f));
  record_reader reader(dir / "b.npy");
  file_writer whole(file_roots::anywhere(), dir / "c");
  const file_descriptor read = file_roots::anywhere().open_file(dir / "b.npy");
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string file = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!file.starts_with(dir.path().string())) continue;
    CAPTURE(file);
    CHECK((::fcntl(std::stoi(entry.path().filename().string()), F_GETFD) & FD_CLOEXEC) != 0);
    ++seen;
  }
  CHECK(seen == 6);  // and the directory in which the last one is written
}

TEST_CASE("what is flushed can be read") {
  testing::temporary_folder dir;
  record_writer writer(dir / "a");
  writer.write("one");
  writer.flush();
  CHECK(records_of(dir / "a") == std::vector<std::string>{"one"});
  writer.write("two");
  writer.flush();
  CHECK(records_of(dir / "a").size() == 2);
}

TEST_CASE("a corrupt file is refused with its name and the record's offset") {
  testing::temporary_folder dir;
  {
    record_writer writer(dir / "whole");
    writer.write("hello");
    writer.write("world!");
  }
  const std::string whole = read_bytes(dir / "whole");
  auto damaged = [&](std::size_t at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write_bytes(dir / "a", bytes);
    return failure(dir, "a");
  };
  CHECK(
      damaged(0) ==
      "data_loss: [record_reader] a: the record at offset 0: the checksum of its length is wrong");
  CHECK(damaged(8).ends_with("offset 0: the checksum of its length is wrong"));
  CHECK(damaged(14).ends_with("offset 0: the checksum of its bytes is wrong"));
  CHECK(damaged(21).ends_with("offset 21: the checksum of its length is wrong"));
  CHECK(damaged(whole.size() - 1).ends_with("offset 21: the checksum of its bytes is wrong"));
  for (std::size_t cut = 1; cut < whole.size(); ++cut) {
    CAPTURE(cut);
    write_bytes(dir / "a", whole.substr(0, cut));
    const std::string e = failure(dir, "a");
    if (cut == 21)
      CHECK(e.empty());
    else
      CHECK(e.starts_with("data_loss: [record_reader] a: the record at offset " +
                          std::string(cut < 21 ? "0: the file ends" : "21: the file ends")));
  }
  // A length that its own checksum confirms, of more than there is.
  std::string endless(8, '\xff');
  const std::uint32_t crc = std::rotr(crc32c(endless), 15) + 0xa282ead8u;
  endless.append(reinterpret_cast<const char*>(&crc), 4);
  write_bytes(dir / "a", endless);
  CHECK(failure(dir, "a").starts_with("data_loss"));
  CHECK(failure(dir, "missing") == "not_found: [record_reader] there is no file missing");
  CHECK(testing::error_of([] { record_writer("/nowhere/a"); }) ==
        "unavailable: [record_writer] cannot write /nowhere/a: No such file or directory");
}

TEST_CASE("a compressed file that is cut off is refused") {
  testing::temporary_folder dir;
  {
    record_writer writer(dir / "whole.gz");
    for (int i = 0; i < 100; ++i) writer.write(std::string(1000, static_cast<char>(i * i)));
  }
  const std::string whole = read_bytes(dir / "whole.gz");
  write_bytes(dir / "a.gz", whole.substr(0, whole.size() / 2));
  CHECK(failure(dir, "a.gz").starts_with("data_loss: [record_reader] a.gz: the record at offset"));
}

TEST_CASE("damage to one of several compressed parts is an error after those before it") {
  testing::temporary_folder dir;
  const std::vector<std::string> records(50, "record");
  {
    record_writer writer(dir / "part.gz");
    for (const auto& r : records) writer.write(r);
  }
  const std::string part = read_bytes(dir / "part.gz");
  // How many records are read of a first part and these bytes, and what reading them throws.
  const auto read = [&](const std::string& bytes) {
    write_bytes(dir / "a.gz", part + bytes);
    std::size_t n = 0;
    const std::string e = testing::error_of([&] {
      record_reader reader(dir / "a.gz");
      while (reader.next()) ++n;
    });
    return std::pair(n, e.substr(0, e.find(':')));
  };
  CHECK(read("") == std::pair(50ul, std::string()));
  CHECK(read(part + part) == std::pair(150ul, std::string()));
  CHECK(read(part + std::string(1'000'000, '\0')) == std::pair(100ul, std::string()));
  CHECK(read(std::string(511, '\0') + part) == std::pair(100ul, std::string()));
  const std::pair lost(50ul, std::string("data_loss"));
  CHECK(read("rubbish") == lost);
  for (std::size_t cut = 1; cut < 20; ++cut) CHECK(read(part.substr(0, cut)) == lost);
  for (std::size_t at = 0; at < 3; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = part;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      CHECK(read(damaged) == lost);
    }
  for (const std::size_t at : {part.size() - 1, part.size() - 8}) {  // its length and checksum
    std::string damaged = part;
    damaged[at] ^= 1;
    CHECK(read(damaged) == std::pair(100ul, std::string("data_loss")));
    CHECK(failure(dir, "a.gz").find("its compressed data is corrupt: incorrect ") !=
          std::string::npos);
  }
}

TEST_CASE("a file that could not be written once fails with the same error from then on") {
  testing::temporary_folder dir;
  for (const std::string name : {"a", "a.gz"}) {
    record_writer writer(dir / name);
    const std::string reason =
        "unavailable: [record_writer] cannot write " + (dir / name).string() + ": File too large";
    const auto write = [&] {
      std::string noise(1u << 20, '\0');  // which does not become smaller
      std::ranges::generate(noise, std::mt19937());
      writer.write(noise);
      writer.flush();
    };
    {
      const testing::file_size_limit full(1000);
      CHECK(testing::error_of(write) == reason);
    }
    CHECK(testing::error_of(write) == reason);
    CHECK(testing::error_of([&] { writer.flush(); }) == reason);
    CHECK(testing::error_of([&] { writer.close(); }) == reason);
  }
}

TEST_CASE("a full disk is an error of its own") {
  record_writer writer("/dev/full");
  CHECK(testing::error_of([&] {
          writer.write(std::string(1 << 20, 'x'));
          writer.flush();
        }).starts_with("resource_exhausted: [record_writer] cannot write /dev/full: No space"));
}
