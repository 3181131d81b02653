// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <deft/core/log.hpp>
#include <deft/core/ndarray.hpp>
#include <deft/core/printable.hpp>
#include <deft/core/safetensors.hpp>
#include <filesystem>

#include "../data/temporary_folder.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;
using testing::temporary_folder;

namespace {

std::map<std::string, any_array> some_arrays() {
  return {{"layer1/w", ndarray<float, 2, 3>{1, 2, 3, 4, 5, 6}.array()},
          {"flags", ndarray<bool, 3>{true, false, true}.array()},
          {"step", any_array::scalar(std::int64_t{7})},
          {"bytes", ndarray<std::uint8_t, 5>{1, 2, 3, 4, 255}.array()},
          {"ids", ndarray<std::int32_t, 2>{-1, 1}.array()},
          {"signed", ndarray<std::int8_t, 3>{-1, -128, 127}.array()},
          {"none", any_array(dtype::float64, dims{0, 4})},
          {"a \"quoted\"\nname", any_array::scalar(2.5)}};
}

/// A file with this header and data.
void write_with(const std::string& path, const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  testing::write_bytes(path, bytes + header + data);
}

/// The warnings that are logged meanwhile.
class warnings {
 public:
  warnings() {
    lines().clear();
    logging::set_sink([](logging::level, const std::string& line) { lines().push_back(line); });
  }
  warnings(const warnings&) = delete;
  ~warnings() { logging::set_sink(nullptr); }
  const std::vector<std::string>& all() const { return lines(); }

 private:
  static std::vector<std::string>& lines() {
    static std::vector<std::string> all;
    return all;
  }
};

}  // namespace

TEST_CASE("arrays of every dtype are read as they were written") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  write_safetensors(path, some_arrays());
  CHECK(read_safetensors(path) == some_arrays());
  CHECK(testing::names_in(folder) == std::vector<std::string>{"x.safetensors"});
  const safetensors_file file(path);
  CHECK(file.entries().size() == some_arrays().size());
  CHECK(file.entries().at("layer1/w").type == "F32");
  CHECK(file.entries().at("layer1/w").shape == dims{2, 3});
  CHECK(file.entries().at("layer1/w").begin % 8 == 0);
  CHECK(error_of([&] {
          file.read("w2");
        }).starts_with("not_found: [safetensors] " + path + " has no array \"w2\""));
}

TEST_CASE("arrays of whole cache lines begin with one, and all with an element") {
  const temporary_folder folder;
  for (const std::string name : {"a", "a longer name", "one that is longer still, by far"}) {
    const std::string path = folder / "x.safetensors";
    std::map<std::string, any_array> arrays = some_arrays();
    arrays.emplace(name, ndarray<float, 32>().array());
    arrays.emplace(name + "2", ndarray<std::uint8_t, 64>().array());
    write_safetensors(path, arrays);
    const safetensors_file file(path);
    for (const auto& [key, e] : file.entries()) {
      const std::string& array = key;
      CAPTURE(array);
      CHECK(e.begin % (e.bytes % 64 == 0 ? 64 : size_of_dtype(e.element)) == 0);
    }
    CHECK(read_safetensors(path) == arrays);
  }
}

TEST_CASE("a file without deft's checksums is read, as other programs write it") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  write_with(path, R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  )",
             std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  CHECK(read_safetensors(path).at("b") == ndarray<float, 2>{1, 2}.array());
  // As the Hugging Face hub lays files out.
  std::filesystem::create_symlink("x.safetensors", folder / "link.safetensors");
  CHECK(read_safetensors(folder / "link.safetensors") == read_safetensors(path));
}

TEST_CASE("F16 and BF16 are read as float") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  const std::int64_t n = 1 << 16;  // every pattern of bits
  for (const std::string type : {"F16", "BF16"}) {
    CAPTURE(type);
    std::string data;
    for (std::int64_t i = 0; i < n * 20; ++i) {  // more than a piece
      data += static_cast<char>(i & 255);
      data += static_cast<char>(i >> 8 & 255);
    }
    const std::string bytes = std::to_string(data.size());
    write_with(path,
               R"({"h":{"dtype":")" + type + R"(","shape":[20,65536],"data_offsets":[0,)" + bytes +
                   R"(]},"f":{"dtype":"F32","shape":[],"data_offsets":[)" + bytes + "," +
                   std::to_string(data.size() + 4) + "]}}",
               data + std::string("\0\0\x80\x3f", 4));
    const safetensors_file file(path);
    CHECK(file.entries().at("h").type == type);
    CHECK(file.entries().at("h").element == dtype::float32);
    const any_array a = file.read("h");
    CHECK(a.shape() == dims{20, n});
    CHECK(file.read("f").item<float>() == 1);
    const float* v = a.data<float>();
    const bool is_half = type == "F16";
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < 20 * n; ++i) {
      const auto bits = static_cast<std::uint32_t>(i & 0xffff);
      const std::uint32_t fraction = is_half ? bits & 1023 : bits & 127;
      const int exponent = static_cast<int>(is_half ? bits >> 10 & 31 : bits >> 7 & 255);
      const int most = is_half ? 31 : 255, bias = is_half ? 15 : 127, width = is_half ? 10 : 7;
      double expected = exponent == most && fraction == 0 ? HUGE_VAL
                        : exponent == 0
                            ? std::ldexp(fraction, 1 - bias - width)
                            : std::ldexp((1 << width) + fraction, exponent - bias - width);
      if (bits >> 15) expected = -expected;
      if (exponent == most && fraction != 0)
        wrong += !std::isnan(v[i]);
      else
        wrong += v[i] != expected || std::signbit(v[i]) != std::signbit(expected);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("an array that deft cannot have is left out, and the reason is said") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  const std::string nine =
      R"("nine":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[1,5]})";
  const std::string eight = R"("eight":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]})";
  const std::string b = R"("b":{"dtype":"F32","shape":[1],"data_offsets":[5,9]})";
  const std::string four("\0\0\x80\x3f", 4);
  write_with(path, "{" + nine + "," + eight + "," + b + "}", "x" + four + four);
  {
    const warnings logged;
    CHECK(read_safetensors(path) ==
          std::map<std::string, any_array>{{"b", ndarray<float, 1>{1}.array()}});
    CHECK(
        logged.all() ==
        std::vector<std::string>{
            "[safetensors] " + path +
                ": left out: \"eight\" is of F8_E4M3, and deft has no such elements: convert it to "
                "F32, or to another type that it has",
            "[safetensors] " + path +
                ": left out: \"nine\" is of rank 9, and deft's arrays have at most 8 axes"});
  }
  const safetensors_file file(path);
  CHECK(error_of([&] {
          file.read("eight");
        }).starts_with("unimplemented: [safetensors] " + path + ": \"eight\" is of F8_E4M3"));
  CHECK(error_of([&] { file.read("nine"); }).find("\"nine\" is of rank 9") != std::string::npos);
  write_with(path, "{" + eight + "}", "x");
  CHECK(error_of([&] { read_safetensors(path); }).starts_with("unimplemented: "));
}

TEST_CASE("a key that occurs twice is refused, wherever it is") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  for (const auto& [header, key] :
       {std::pair("{" + a + "," + a + "}", "a"),
        std::pair("{" + a + R"(,"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})", "a"),
        std::pair("{" + a + R"(,"\u0061":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})", "a"),
        std::pair(std::string(R"({"a":{"dtype":"F32","dtype":"I32","shape":[1],)"
                              R"("data_offsets":[0,4]}})"),
                  "dtype"),
        std::pair(R"({"__metadata__":{"k":"1","k":"2"},)" + a + "}", "k"),
        std::pair(R"({"__metadata__":{},"__metadata__":{},)" + a + "}", "__metadata__")}) {
    write_with(path, header, "1234");
    CHECK(error_of([&] { read_safetensors(path); }) ==
          "data_loss: [safetensors] " + path + ": its header has the key \"" + key + "\" twice");
  }
}

TEST_CASE("a file with one bit flipped, or cut off anywhere, is data_loss and names the file") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  write_safetensors(path, some_arrays());
  const std::string bytes = testing::read_bytes(path);
  for (std::size_t i = 0; i < 8 * bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << i % 8));
    testing::write_bytes(path, flipped);
    CAPTURE(i);
    CHECK(
        error_of([&] { read_safetensors(path); }).starts_with("data_loss: [safetensors] " + path));
  }
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    testing::write_bytes(path, bytes.substr(0, n));
    CHECK(error_of([&] { read_safetensors(path); }).starts_with("data_loss: "));
  }
  testing::write_bytes(path, bytes + "x");
  CHECK(error_of([&] { read_safetensors(path); }).find("and its header says") != std::string::npos);
}

TEST_CASE("the pieces of a large array are read in any order, and all are checked") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  any_array a(dtype::int32, dims{1'500'001});
  auto* elements = a.mutable_data<std::int32_t>();
  for (int i = 0; i < 1'500'001; ++i) elements[i] = i * 7;
  write_safetensors(path, {{"a", a}});
  const auto backwards = [](std::int64_t n, const std::function<void(std::int64_t)>& f) {
    CHECK(n == 3);
    while (n-- > 0) f(n);
  };
  CHECK(safetensors_file(path).read("a", {}, backwards) == a);
  CHECK(safetensors_file(path).read("a") == a);
  const std::string bytes = testing::read_bytes(path);
  for (const std::size_t at :
       {bytes.size() - 1, bytes.size() - 2'500'000, bytes.size() - 5'999'999}) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    testing::write_bytes(path, flipped);
    CHECK(error_of([&] {
            safetensors_file(path).read("a", {}, backwards);
          }).starts_with("data_loss: [safetensors] " + path + ": the checksum of \"a\""));
  }
}

TEST_CASE("what could not be read again is not written") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  const auto refusal = [&](const std::string& name, const any_array& a) {
    const std::string e = error_of([&] { write_safetensors(path, {{name, a}}); });
    CHECK_FALSE(std::filesystem::exists(path));
    return e;
  };
  const std::string begin = "invalid_argument: [safetensors] " + path + ": cannot hold ";
  const any_array a = any_array::scalar(1.f);
  CHECK(refusal("__metadata__", a) == begin + "\"__metadata__\": the format reserves this name");
  for (const std::string name : {"w\xff", "w\xc3", "\xed\xa0\x80"})
    CHECK(refusal(name, a) == begin + "\"" + printable(name) + "\": its name is not valid UTF-8");
  CHECK(refusal("w", {}) == begin + "\"w\": it is an any_array without a dtype");
  write_safetensors(path, {{"größe", a}});
  CHECK(read_safetensors(path).at("größe") == a);
}

TEST_CASE("strings are not written, and named") {
  const testing::temporary_folder folder;
  CHECK(error_of([&] {
          write_safetensors(folder / "s", {{"names", any_array::scalar("text")}});
        }).ends_with(": cannot hold \"names\": the format has no elements of string"));
}

TEST_CASE("headers that are not sound are refused before anything is allocated") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  const char* headers[] = {
      "[]",
      "{",
      R"({"a":1})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})",
      (R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})"),
      R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})",
  };
  for (const char* h : headers) {
    CAPTURE(h);
    write_with(path, h, "1234");
    CHECK(error_of([&] { read_safetensors(path); }).starts_with("data_loss: [safetensors] "));
  }
  testing::write_bytes(path, std::string(8, '\x7f'));
  CHECK(error_of([&] { read_safetensors(path); }).find("is too long") != std::string::npos);
  CHECK(error_of([&] { read_safetensors(folder / "none"); }).starts_with("not_found: "));
}
