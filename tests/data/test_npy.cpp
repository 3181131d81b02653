// SPDX-License-Identifier: Apache-2.0
// tests/data/test_npy.cpp: .npy files as NumPy writes them, and damaged ones.
#include <deft/data/npy.hpp>
// its own header comes first, to check that it is self-contained
#include <deft/data/pipeline.hpp>

#include "../testing.hpp"
#include "temporary_folder.hpp"

using namespace deft;
using namespace deft::ext;
using testing::read_bytes;
using testing::write_bytes;

namespace {

/// A file of version 1 with this header.
std::string file_of(const std::string& header, const std::string& elements = {}) {
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + header +
         elements;
}
/// What reading these bytes throws, without the folder.
std::string failure(const testing::temporary_folder& dir, const std::string& bytes) {
  write_bytes(dir / "a.npy", bytes);
  std::string s = testing::error_of([&] { read_npy(dir / "a.npy"); });
  const auto at = s.find(dir.path().string() + "/");
  return at == s.npos ? s : s.erase(at, dir.path().string().size() + 1);
}

}  // namespace

TEST_CASE("an array is read back as it was written") {
  testing::temporary_folder dir;
  const std::string file = dir / "a.npy";
  auto check = [&](const any_array& a) {
    write_npy(file, a);
    const any_array b = read_npy(file);
    CHECK(a == b);
    CHECK(b.type() == a.type());
    CHECK(read_bytes(file).size() % 64 == a.bytes() % 64);
  };
  check(ndarray<float, 2, 3>{1, 2, 3, 4, 5, 6}.array());
  check(ndarray<double, 2>{1, -2}.array());
  check(ndarray<std::int32_t, 1, 1, 2>{1, -2}.array());
  check(ndarray<std::int64_t, dyn>{1, -2}.array());
  check(ndarray<std::uint8_t, 3>{0, 1, 255}.array());
  check(ndarray<std::int8_t, 3>{0, -1, -128}.array());
  check(ndarray<bool, 2>{true, false}.array());
  check(any_array::scalar(7.5f));
  check(ndarray<float, dyn, 4>(0).array());
  write_npy(file, ndarray<float, 2>{1, 2});
  CHECK(ndarray<float, dyn>(read_npy(file)) == ndarray<float, dyn>{1, 2});
}

TEST_CASE("a compressed file is detected by its content") {
  testing::temporary_folder dir;
  const any_array a = ndarray<float, dyn>(100'000).array();
  write_npy(dir / "a.npy.gz", a);
  const std::string whole = read_bytes(dir / "a.npy.gz");
  CHECK(whole.substr(0, 2) == "\x1f\x8b");
  CHECK(whole.size() < a.bytes() / 100);
  CHECK(read_npy(dir / "a.npy.gz") == a);
  write_bytes(dir / "b", whole);
  CHECK(read_npy(dir / "b") == a);
  for (std::size_t cut = 2; cut < whole.size(); ++cut) {
    CAPTURE(cut);
    CHECK(
        failure(dir, whole.substr(0, cut)).starts_with("data_loss: [read_npy] a.npy: at offset "));
  }
  CHECK(
      failure(dir, whole.substr(0, whole.size() - 1)).ends_with("its compressed data is cut off"));
  std::string flipped = whole;
  flipped[flipped.size() - 6] ^= 1;  // in the checksum
  CHECK(failure(dir, flipped).ends_with("its compressed data is corrupt: incorrect data check"));
}

TEST_CASE("files are those of NumPy") {
  testing::temporary_folder dir;
  write_npy(dir / "a.npy", ndarray<std::int32_t, 2>{1, 2});
  // numpy.save(file, numpy.array([1, 2], 'i4')) of NumPy 2.4.
  std::string expected("\x93NUMPY\1\0\x76\0", 10);
  expected += "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }";
  expected.append(127 - expected.size(), ' ');
  expected += std::string("\n\1\0\0\0\2\0\0\0", 9);
  CHECK(read_bytes(dir / "a.npy") == expected);
  // Versions 2 and 3 have a longer length; keys and blanks may differ.
  for (char version : {'\2', '\3'}) {
    const std::string text = "{\"shape\":(1,2),'fortran_order':False,'descr':'|u1'}\n";
    write_bytes(dir / "c.npy", std::string("\x93NUMPY") + version + '\0' +
                                   static_cast<char>(text.size()) + std::string(3, '\0') + text +
                                   "ab");
    CHECK(read_npy(dir / "c.npy") == ndarray<std::uint8_t, 1, 2>{'a', 'b'}.array());
  }
}

TEST_CASE("floats of 16 bits are read as they are") {
  testing::temporary_folder dir;
  const std::string header = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 2)}";
  write_bytes(dir / "a.npy", file_of(header, std::string("\x00\x3c\x00\xc0\xff\x7b\x01\x00", 8)));
  CHECK(read_npy(dir / "a.npy") == ndarray<float16, 2, 2>{1, -2, 65504, 0x1p-24f}.array());
  CHECK(failure(dir, file_of(header, "1234567")).find("more than the file can hold") !=
        std::string::npos);
}

TEST_CASE("headers are those of any Python") {
  testing::temporary_folder dir;
  const std::string elements("\0\0\x80\x3f\0\0\0\x40", 8);
  for (const std::string header :
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 1L), }",
        "{'descr':\t'<f4',\t'fortran_order':\tFalse,\t'shape':\t(2,\t1)\t}\t\n",
        "{\r\n\"shape\": (2 ,1L,),\f\"fortran_order\": False, \"descr\": \"<f4\"}",
        "{u'descr': u'<f4', u'fortran_order': False, u'shape': (2, 1)}"}) {
    CAPTURE(header);
    write_bytes(dir / "a.npy", file_of(header, elements));
    CHECK(read_npy(dir / "a.npy") == ndarray<float, 2, 1>{1, 2}.array());
  }
  for (const std::string shape : {"(2LL,)", "(L,)", "(2 L,)", "(2l,)", "(2x,)"}) {
    CAPTURE(shape);
    CHECK(failure(dir, file_of("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }",
                               elements))
              .ends_with("its header is not that of an array"));
  }
}

TEST_CASE("rows of files are elements of a dataset") {
  testing::temporary_folder dir;
  write_npy(dir / "x.npy", ndarray<float, 3, 2>{1, 2, 3, 4, 5, 6});
  write_npy(dir / "y.npy", ndarray<std::int32_t, 3>{7, 8, 9});
  std::string seen;
  for (auto& [x, y] : from_slices(ndarray<float, dyn, 2>(read_npy(dir / "x.npy")),
                                  ndarray<std::int32_t, dyn>(read_npy(dir / "y.npy")))
                          .batch(2))
    seen += str(x.extents(), y);
  CHECK(seen == "(2,2)[7 8](1,2)[9]");
  auto untyped = from_slices(read_npy(dir / "x.npy"));
  static_assert(std::is_same_v<decltype(untyped), dataset<any_array>>);
  seen.clear();
  for (auto& [x] : untyped.skip(1).batch(2)) seen += to_string(x);
  CHECK(seen == "[[3. 4.]\n [5. 6.]]");
}

TEST_CASE("corrupt and truncated files are refused with name and offset") {
  testing::temporary_folder dir;
  const std::string good = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n";
  const std::string whole = file_of(good, std::string("\1\0\0\0\2\0\0\0", 8));
  CHECK(failure(dir, whole) == "");
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    CAPTURE(cut);
    CHECK(
        failure(dir, whole.substr(0, cut)).starts_with("data_loss: [read_npy] a.npy: at offset "));
  }
  CHECK(failure(dir, whole.substr(0, 7)) ==
        "data_loss: [read_npy] a.npy: at offset 7: it ends within its header");
  CHECK(failure(dir, whole.substr(0, whole.size() - 1)) ==
        "data_loss: [read_npy] a.npy: at offset 68: its header announces (2) elements of int32, "
        "more than the file can hold");
  CHECK(failure(dir, whole + "x")
            .ends_with("at offset 76: it has more bytes than (2) elements of int32 need"));
  for (const std::string& other : {"x" + whole, std::string("text")})
    CHECK(failure(dir, other) ==
          "data_loss: [read_npy] a.npy: at offset 0: it does not begin with \\x93NUMPY, as .npy "
          "files do");
  std::string other = whole;
  other[6] = 4;
  CHECK(
      failure(dir, other).ends_with("at offset 6: its format version is 4.0; expected 1.0 to 3.0"));
  for (const std::string header :
       {"", "{", "{}", "{'descr'}", "{'descr': '<i4', 'fortran_order': False}",
        "{'descr': '<i4', 'fortran_order': 0, 'shape': (2,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (2 2)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (2,)} more",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999,)}"}) {
    CAPTURE(header);
    CHECK(failure(dir, file_of(header)).ends_with("its header is not that of an array"));
  }
  CHECK(
      failure(dir, file_of("{'descr': '<i4', 'fortran_order': False, 'shape': (4611686018427387904,"
                           "4)}"))
          .ends_with("is too large"));
  CHECK(failure(dir, file_of("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", "\1\3")) ==
        "data_loss: [read_npy] a.npy: at offset 66: a bool is 3");
  CHECK(testing::error_of([] { read_npy("/nowhere.npy"); }) ==
        "not_found: [read_npy] there is no file /nowhere.npy");
}

TEST_CASE("arrays of dtypes that deft does not have are refused") {
  testing::temporary_folder dir;
  auto of = [&](const std::string& descr, const std::string& order) {
    const std::string s = failure(
        dir, file_of("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': (0,)}"));
    return s.substr(0, s.find(';'));
  };
  CHECK(of("'>f4'", "False") == "unimplemented: [read_npy] a.npy has big-endian elements");
  CHECK(of("'<f4'", "True") == "unimplemented: [read_npy] a.npy has Fortran order");
  CHECK(of("'>f2'", "False") == "unimplemented: [read_npy] a.npy has big-endian elements");
  CHECK(of("'<f16'", "False") == "unimplemented: [read_npy] a.npy has elements of type <f16");
  CHECK(of("[('a', '<f4')]", "False") == "unimplemented: [read_npy] a.npy has structured elements");
  CHECK(failure(dir, file_of("{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)"
                             "}"))
            .find("a rank above 8") != std::string::npos);
}

TEST_CASE("a file that cannot be written is an error") {
  CHECK(testing::error_of([] { write_npy("/nowhere/a.npy", any_array::scalar(1)); }) ==
        "unavailable: [write_npy] cannot write /nowhere/a.npy: No such file or directory");
  CHECK(testing::error_of([] { write_npy("/dev/full", any_array::scalar(1)); }) ==
        "resource_exhausted: [write_npy] cannot write /dev/full: No space left on device");
}

TEST_CASE("strings are not written, and named") {
  const testing::temporary_folder folder;
  CHECK(testing::error_of([&] {
          write_npy(folder / "s.npy", any_array::scalar("text"));
        }).starts_with("invalid_argument: [write_npy] .npy files cannot hold string: "));
}
