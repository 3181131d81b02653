// SPDX-License-Identifier: Apache-2.0
// tests/data/test_gguf.cpp: GGUF files made by hand, and damaged ones.
#include <deft/data/gguf.hpp>
// its own header comes first, to check that it is self-contained
#include <deft/core/ndarray.hpp>
#include <filesystem>

#include "../testing.hpp"
#include "gguf_bytes.hpp"
#include "temporary_folder.hpp"

using namespace deft;
using testing::gguf_bytes;

namespace {

/// A value of each kind.
gguf_bytes& every_kind(gguf_bytes& f) {
  f.key("u8", 0).number(std::uint8_t{255}).key("i8", 1).number(std::int8_t{-1});
  f.key("u16", 2).number(std::uint16_t{65535}).key("i16", 3).number(std::int16_t{-2});
  f.key("u32", 4).number(4'000'000'000u).key("i32", 5).number(-3);
  f.key("f32", 6).number(0.5f).key("bool", 7).number(std::uint8_t{1});
  f.key("text", 8).text("größe").strings("texts", {"a", "", "b c"});
  f.key("u64", 10).number(~std::uint64_t{0}).key("i64", 11).number(std::int64_t{-4});
  f.key("f64", 12).number(0.1);
  f.key("numbers", 9).number(5u).number(std::uint64_t{3}).number(7).number(8).number(9);
  return f.key("nested", 9).number(9u).number(std::uint64_t{2});  // two arrays follow
}
constexpr std::uint64_t kinds = 15;

std::string whole_file(std::uint32_t version = 3) {
  gguf_bytes f = gguf_bytes::file(5, kinds, version);
  every_kind(f);
  f.number(7u).number(std::uint64_t{2}).raw(std::string("\1\0", 2));
  f.number(7u).number(std::uint64_t{0});
  f.tensor("w", {3, 2}, 0, 0).tensor("half", {2}, 1, 32).tensor("brain", {2}, 30, 64);
  f.tensor("blocks", {32, 2}, 8, 96).tensor("other", {256}, 14, 192).align();
  for (float v : {1.f, 2.f, 3.f, 4.f, 5.f, 6.f}) f.number(v);
  f.align().number(std::uint16_t{0x3c00}).number(std::uint16_t{0xc000});
  f.align().number(std::uint16_t{0x3f80}).number(std::uint16_t{0x4000}).align();
  for (int row = 0; row < 2; ++row) {
    f.number(static_cast<std::uint16_t>(row ? 0x4000 : 0x3c00));  // 2, 1
    for (int i = 0; i < 32; ++i) f.number(static_cast<std::int8_t>(i - 16));
  }
  f.align().raw(std::string(210, 'x'));
  return f.bytes();
}

/// What opening these bytes throws, without the folder.
std::string failure(const testing::temporary_folder& dir, const std::string& bytes) {
  testing::write_bytes(dir / "a.gguf", bytes);
  std::string s = testing::error_of([&] { read_gguf(dir / "a.gguf"); });
  const auto at = s.find(dir.path().string() + "/");
  return at == s.npos ? s : s.erase(at, dir.path().string().size() + 1);
}

}  // namespace

TEST_CASE("values of every kind are read, and say what they are") {
  const testing::temporary_folder dir;
  const std::string path = dir / "a.gguf";
  testing::write_bytes(path, whole_file());
  const gguf_file file = read_gguf(path);
  CHECK(file.metadata().size() == kinds);
  CHECK(file.get<int>("u8") == 255);
  CHECK(file.get<int>("i8") == -1);
  CHECK(file.get<std::uint16_t>("u16") == 65535);
  CHECK(file.get<std::int64_t>("i16") == -2);
  CHECK(file.get<std::uint32_t>("u32") == 4'000'000'000u);
  CHECK(file.get<std::int32_t>("i32") == -3);
  CHECK(file.get<float>("f32") == 0.5f);
  CHECK(file.get<double>("f32") == 0.5);
  CHECK(file.get<bool>("bool"));
  CHECK(file.get<std::string>("text") == "größe");
  CHECK(file.get<std::vector<std::string>>("texts") == std::vector<std::string>{"a", "", "b c"});
  CHECK(file.get<std::uint64_t>("u64") == ~std::uint64_t{0});
  CHECK(file.get<std::int64_t>("i64") == -4);
  CHECK(file.get<double>("f64") == 0.1);
  CHECK(file.get<std::vector<std::int64_t>>("numbers") == std::vector<std::int64_t>{7, 8, 9});
  CHECK(file.get<std::vector<std::vector<bool>>>("nested") ==
        std::vector<std::vector<bool>>{{true, false}, {}});
  CHECK(file.get<std::vector<gguf_value>>("nested").at(0).as<std::vector<bool>>().size() == 2);
  CHECK(file.metadata().at("nested").type() == "array of array of bool");
  CHECK(file.metadata().at("numbers").size() == 3);
  CHECK(file.get<int>("none", 7) == 7);
  CHECK(file.get<int>("i32", 7) == -3);

  const auto error = [&](auto f) { return testing::error_of(f); };
  CHECK(error([&] { file.get<int>("none"); }) ==
        "not_found: [gguf] " + path + " has no value \"none\"");
  CHECK(error([&] { file.get<int>("text"); }) ==
        "invalid_argument: [gguf] " + path + ": \"text\" is string, not an integer");
  CHECK(
      error([&] { file.get<std::vector<float>>("numbers"); }) ==
      "invalid_argument: [gguf] " + path +
          ": \"numbers\" is array of int32 with an element of int32, not a floating-point number");
  CHECK(error([&] { file.get<std::string>("numbers"); }).ends_with("array of int32, not a string"));
  CHECK(error([&] { file.get<std::vector<int>>("i8"); }).ends_with("is int8, not an array"));
  CHECK(error([&] { file.get<bool>("u8"); }).ends_with("is uint8, not a bool"));
  CHECK(error([&] { file.get<std::int32_t>("u32"); }) ==
        "out_of_range: [gguf] " + path +
            ": \"u32\" is 4000000000, which does not fit into an integer of 4 bytes");
  CHECK(error([&] { file.get<std::uint64_t>("i64"); }).find("\"i64\" is -4, which") !=
        std::string::npos);
  CHECK(error([&] { file.get<std::int64_t>("u64"); }).starts_with("out_of_range: "));
}

TEST_CASE("tensors have row-major shapes, and those of plain types are the file's pages") {
  const testing::temporary_folder dir;
  const std::string path = dir / "a.gguf";
  for (const std::uint32_t version : {2u, 3u}) {
    testing::write_bytes(path, whole_file(version));
    const gguf_file file(path);
    const any_array w = file.read("w");
    CHECK(w == ndarray<float, 2, 3>{1, 2, 3, 4, 5, 6}.array());
    CHECK_FALSE(w.storage().unique());
    CHECK(w.raw() == file.read("w").raw());
    CHECK(file.read("half") == ndarray<float, 2>{1, -2}.array());
    CHECK(file.read("brain") == ndarray<float, 2>{1, 2}.array());
    const quantized_array blocks = file.quantized("blocks");
    CHECK(blocks.format() == block_format::q8_0);
    CHECK(blocks.shape() == dims{2, 32});
    CHECK(blocks.bytes() == 68);
    const any_array elements = file.read("blocks");
    for (int i = 0; i < 64; ++i)
      CHECK(elements.data<float>()[i] == static_cast<float>((i < 32 ? 1 : 2) * (i % 32 - 16)));
  }
}

TEST_CASE("an array outlives its file") {
  const testing::temporary_folder dir;
  testing::write_bytes(dir / "a.gguf", whole_file());
  const any_array w = read_gguf(dir / "a.gguf").read("w");
  const quantized_array blocks = read_gguf(dir / "a.gguf").quantized("blocks");
  std::filesystem::remove(dir / "a.gguf");
  CHECK(w.data<float>()[5] == 6);
  CHECK(blocks.dequantized().data<float>()[63] == 30);
}

TEST_CASE("a tensor of another type is listed, and not read") {
  const testing::temporary_folder dir;
  const std::string path = dir / "a.gguf";
  testing::write_bytes(path, whole_file());
  const gguf_file file(path);
  CHECK(file.entries().at("other").type == "Q6_K");
  CHECK(file.entries().at("other").bytes == 210);
  CHECK(
      testing::error_of([&] { file.read("other"); }) ==
      "unimplemented: [gguf] " + path +
          ": \"other\" is of Q6_K; expected F32, F64, F16, BF16, I8, I32, I64, Q8_0, Q4_0 or Q4_1: "
          "convert the file");
  CHECK(testing::error_of([&] { file.quantized("w"); }) ==
        "invalid_argument: [gguf] " + path +
            ": \"w\" is of F32; expected Q8_0, Q4_0 or Q4_1: read gives the elements of other "
            "tensors");
  CHECK(testing::error_of([&] { file.read("none"); }) ==
        "not_found: [gguf] " + path + " has no tensor \"none\"");
}

TEST_CASE("a file that is cut off anywhere is data_loss") {
  const testing::temporary_folder dir;
  const std::string bytes = whole_file();
  CHECK(failure(dir, bytes).empty());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    CAPTURE(n);
    CHECK(
        failure(dir, bytes.substr(0, n)).starts_with("data_loss: [read_gguf] a.gguf: at offset "));
  }
}

TEST_CASE("what is not sound is named, before anything is allocated for it") {
  const testing::temporary_folder dir;
  const auto many = ~std::uint64_t{0};
  const std::string begin = "data_loss: [read_gguf] a.gguf: at offset ";
  const struct {
    gguf_bytes file;
    std::string message;
  } cases[] = {
      {gguf_bytes().raw("GGML").align(), "0: it does not begin with GGUF"},
      {gguf_bytes::file(many, 0).align(),
       "8: the number of tensors is 18446744073709551615, more "
       "than the file has bytes for"},
      {gguf_bytes::file(0, many),
       "16: the number of values is 18446744073709551615, more than the "
       "file has bytes for"},
      {gguf_bytes::file(0, 1).text("a").number(13u).align(64), "37: \"a\" has the unknown kind 13"},
      {gguf_bytes::file(0, 1).key("a", 7).raw("\2"),
       "37: \"a\" is a bool of another value than 0 "
       "and 1"},
      {gguf_bytes::file(0, 1).key("a", 8).number(many),
       "45: \"a\" goes beyond the end of the file"},
      {gguf_bytes::file(0, 1).number(many).align(64),
       "32: the key of value 0 goes beyond the end of the file"},
      {gguf_bytes::file(0, 1).key("a", 9).number(12u).number(many / 8 + 2),
       "41: \"a\" is 2305843009213693953, more than the file has bytes for"},
      {gguf_bytes::file(0, 2).key("a", 0).raw("x").key("a", 0).raw("x"),
       "52: \"a\" is there twice"},
      {gguf_bytes::file(0, 1).key("general.alignment", 4).number(24u),
       "57: \"general.alignment\" is not a power of two"},
      {gguf_bytes::file(0, 1).key("general.alignment", 5).number(32),
       "57: \"general.alignment\" is not a power of two"},
      {gguf_bytes::file(1, 0).tensor("t", {1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, 0),
       "37: tensor \"t\" has 9 axes, and at most 8 are possible"},
      {gguf_bytes::file(1, 0).tensor("t", {many}, 0, 0),
       "45: tensor \"t\" has more elements than are possible"},
      {gguf_bytes::file(1, 0).tensor("t", {1u << 30, 1u << 30}, 0, 0),
       "53: tensor \"t\" has more elements than are possible"},
      {gguf_bytes::file(1, 0).tensor("t", {33}, 2, 0).align(256),
       "57: tensor \"t\" has rows of 33 elements, and blocks of Q4_0 have 32"},
      {gguf_bytes::file(1, 0).tensor("t", {1}, 0, 8).align(256),
       "57: tensor \"t\" begins at 8, which is not a multiple of 32"},
      {gguf_bytes::file(1, 0).tensor("t", {1}, 0, 32).align(64),
       "57: tensor \"t\" goes beyond the end of the file"},
      {gguf_bytes::file(1, 0).tensor("t", {1}, 0, many - 31).align(64),
       "57: tensor \"t\" goes beyond the end of the file"},
      {gguf_bytes::file(2, 0).tensor("t", {16}, 0, 0).tensor("u", {8}, 0, 32).align(256),
       "90: tensor \"u\" overlaps tensor \"t\""},
      {gguf_bytes::file(2, 0).tensor("t", {8}, 0, 0).tensor("t", {8}, 0, 32).align(256),
       "90: tensor \"t\" is there twice"},
  };
  for (const auto& c : cases) CHECK(failure(dir, c.file.bytes()) == begin + c.message);
  gguf_bytes deep = gguf_bytes::file(0, 1).key("a", 9);
  for (int i = 0; i < 1000; ++i) deep.number(9u).number(std::uint64_t{1});
  CHECK(failure(dir, deep.bytes()).ends_with("\"a\" has too many arrays in arrays"));
  CHECK(
      failure(dir, gguf_bytes::file(0, 0, 1).bytes()) ==
      "unimplemented: [read_gguf] a.gguf is of version 1; expected version 2 or 3, little-endian");
  CHECK(failure(dir, gguf_bytes::file(0, 0, 3u << 24).bytes()) ==
        "unimplemented: [read_gguf] a.gguf is big-endian; expected version 2 or 3, little-endian");
  CHECK(testing::error_of([&] { read_gguf(dir / "none"); }).starts_with("not_found: "));
}

TEST_CASE("another alignment counts") {
  const testing::temporary_folder dir;
  gguf_bytes f = gguf_bytes::file(1, 1).key("general.alignment", 4).number(64u);
  f.tensor("t", {2}, 26, 64).align(64).align(64).raw(std::string(64, 'x')).number(7).number(-7);
  testing::write_bytes(dir / "a.gguf", f.bytes());
  CHECK(read_gguf(dir / "a.gguf").read("t") == ndarray<std::int32_t, 2>{7, -7}.array());
}
