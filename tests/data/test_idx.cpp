// SPDX-License-Identifier: Apache-2.0
// tests/data/test_idx.cpp: IDX files are read back as they were written, and invalid ones are
// refused.
#include <deft/data/idx.hpp>
// its own header comes first, to check that it is self-contained
#include <deft/core/ndarray.hpp>
#include <deft/core/philox.hpp>

#include "../testing.hpp"
#include "temporary_folder.hpp"

using namespace deft;
using namespace deft::ext;
using testing::read_bytes;
using testing::write_bytes;

template <class T>
static any_array counting(const dims& shape) {
  any_array a(dtype_of<T>, shape);
  for (std::int64_t i = 0; i < a.elements(); ++i)
    a.mutable_data<T>()[i] = static_cast<T>(i * 7 - 3);
  return a;
}

/// What reading `file` throws, without its folder.
static std::string failure(const testing::temporary_folder& dir, const std::string& file) {
  std::string s = testing::error_of([&] { read_idx(dir / file); });
  auto at = s.find(dir.path().string() + "/");
  return at == s.npos ? s : s.erase(at, dir.path().string().size() + 1);
}

TEST_CASE("an IDX file is read back as it was written, plain and compressed") {
  testing::temporary_folder dir;
  for (std::string name : {"a", "a.gz"}) {
    CAPTURE(name);
    for (const any_array& a :
         {counting<std::uint8_t>({2, 3, 4}), counting<std::int32_t>({5}), counting<float>({3, 2}),
          counting<double>({1, 1, 2}), counting<std::uint8_t>({0, 28, 28}),
          counting<float>({2, 1, 2, 1, 2, 1, 2, 1})}) {
      write_idx(dir / name, a);
      CHECK(read_idx(dir / name) == a);
      CHECK(read_idx_header(dir / name).shape == a.shape());
      CHECK(read_idx_header(dir / name).type == a.type());
    }
  }
  CHECK(read_bytes(dir / "a.gz").substr(0, 2) == "\x1f\x8b");
}

TEST_CASE("an IDX file is big-endian; signed bytes and 16-bit integers are widened") {
  testing::temporary_folder dir;
  write_idx(dir / "a", any_array(counting<std::int32_t>({2})));
  CHECK(read_bytes(dir / "a") ==
        std::string("\0\0\x0c\x01\0\0\0\x02\xff\xff\xff\xfd\0\0\0\x04", 16));
  write_bytes(dir / "b", std::string("\0\0\x09\x01\0\0\0\x02\xff\x7f", 10));
  CHECK(read_idx(dir / "b") == ndarray<std::int32_t, 2>{-1, 127}.array());
  write_bytes(dir / "c", std::string("\0\0\x0b\x01\0\0\0\x02\xff\xfe\x01\x02", 12));
  CHECK(read_idx(dir / "c") == ndarray<std::int32_t, 2>{-2, 258}.array());
}

TEST_CASE("an invalid IDX file is refused with its name and what is wrong") {
  testing::temporary_folder dir;
  auto idx = [](std::string head, std::string rest) {
    return std::string("\0\0", 2) + head + rest;
  };
  const std::string three("\0\0\0\x03", 4);
  struct row {
    std::string bytes, message;
  };
  const row rows[] = {
      {"", "at offset 0: it ends within its header"},
      {std::string("\0\0\x08", 3), "at offset 3: it ends within its header"},
      {"not an IDX file at all", "at offset 0: it does not begin with two zero bytes"},
      {idx("\x07\x01", three + "abc"), "at offset 2: its element type 7 is unknown"},
      {idx(std::string("\x08\0", 2), "a"), "at offset 3: its rank is 0; expected 1 to 8"},
      {idx("\x08\x09", std::string(36, '\1')), "at offset 3: its rank is 9; expected 1 to 8"},
      {idx("\x08\x02", three), "at offset 8: it ends within its header"},
      {idx("\x08\x01", three + "abcd"),
       "at offset 11: it has more bytes than (3) elements of uint8 need"},
      {idx("\x08\x01", three + "ab"),
       "at offset 8: its header announces (3) elements of uint8, more than the file can hold"},
      {idx("\x08\x01", "\xff\xff\xff\xff"),
       "at offset 8: its header announces (4294967295) elements of uint8, more than the file can "
       "hold"},
      {idx("\x0e\x08", std::string(32, '\xff')),
       "at offset 36: its header announces "
       "(4294967295,4294967295,4294967295,4294967295,4294967295,4294967295,"
       "4294967295,4294967295) elements of double, more than the file can hold"},
      {idx("\x08\x03", std::string(8, '\xff') + std::string(4, '\0')),
       "at offset 16: its header announces (4294967295,4294967295,0) elements of uint8, more than "
       "the file can "
       "hold"},
  };
  for (const row& r : rows) {
    write_bytes(dir / "bad", r.bytes);
    CHECK(failure(dir, "bad") == "data_loss: [read_idx] bad: " + r.message);
  }
  CHECK(failure(dir, "none") == "not_found: [read_idx] there is no file none");
  CHECK(failure(dir, ".") == "not_found: [read_idx] . is not a file");
}

TEST_CASE("a compressed IDX file that is cut off or corrupt is refused") {
  testing::temporary_folder dir;
  any_array a(dtype::uint8, {4000});
  philox_stream random(3);
  for (int i = 0; i < 4000; ++i)
    a.mutable_data<std::uint8_t>()[i] = static_cast<std::uint8_t>(random.below(16));
  write_idx(dir / "a.gz", a);
  const std::string whole = read_bytes(dir / "a.gz");
  for (std::size_t n = 2; n < whole.size(); n += n < 40 || n + 40 > whole.size() ? 1 : 97) {
    CAPTURE(n);
    write_bytes(dir / "cut.gz", whole.substr(0, n));
    std::string f = failure(dir, "cut.gz");
    CHECK(f.starts_with("data_loss: [read_idx] cut.gz: at offset "));
  }
  int accepted = 0;
  for (std::size_t n = 12; n < whole.size(); n += 13) {
    CAPTURE(n);
    std::string bent = whole;
    bent[n] = static_cast<char>(bent[n] ^ (1 << random.below(8)));
    write_bytes(dir / "bent.gz", bent);
    std::string f = failure(dir, "bent.gz");
    CHECK_MESSAGE(f.starts_with("data_loss: [read_idx] bent.gz: at offset "), f);
    accepted += f.empty();
  }
  CHECK(accepted == 0);
}

TEST_CASE("arrays that the format cannot hold are not written") {
  testing::temporary_folder dir;
  CHECK(testing::error_of([&] {
          write_idx(dir / "x", counting<std::int64_t>({2}));
        }).starts_with("invalid_argument: [write_idx] IDX files cannot hold int64"));
  CHECK(testing::error_of([&] {
          write_idx(dir / "x", any_array::scalar(1.f));
        }).starts_with("invalid_argument: [write_idx] IDX files cannot hold scalars"));
  CHECK(testing::error_of([&] {
          write_idx(dir / "no/x", counting<float>({2}));
        }).ends_with("/no/x: No such file or directory"));
  CHECK(testing::error_of([&] { write_idx("/dev/full", counting<float>({2})); }) ==
        "resource_exhausted: [write_idx] cannot write /dev/full: No space left on device");
}
