// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deft/core/half.hpp>
#include <deft/core/log.hpp>
#include <deft/core/ndarray.hpp>
#include <deft/core/printable.hpp>
#include <deft/core/safetensors.hpp>
#include <filesystem>
#include <limits>

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

TEST_CASE("F16 and BF16 are read as they are") {
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
    const bool is_half = type == "F16";
    CHECK(file.entries().at("h").element == (is_half ? dtype::float16 : dtype::bfloat16));
    const any_array a = file.read("h");
    CHECK(a.shape() == dims{20, n});
    CHECK(file.read("f").item<float>() == 1);
    const auto value = [&](std::int64_t i) {
      return is_half ? static_cast<float>(a.data<float16>()[i])
                     : static_cast<float>(a.data<bfloat16>()[i]);
    };
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
        wrong += !std::isnan(value(i));
      else
        wrong += value(i) != expected || std::signbit(value(i)) != std::signbit(expected);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("floats are written as F16 and BF16, rounded to nearest, ties to even") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  const float tie = 0x1.01p0f, least = 0x1p-24f;
  const struct {
    float value;
    std::uint16_t brain, half;
  } cases[] = {{1, 0x3f80, 0x3c00},
               {tie, 0x3f80, 0x3c04},  // 1.00390625
               {std::nextafter(tie, 2.f), 0x3f81, 0x3c04},
               {3.14159274f, 0x4049, 0x4248},
               {0.1f, 0x3dcd, 0x2e66},
               {-0.f, 0x8000, 0x8000},
               {65504, 0x4780, 0x7bff},
               {std::nextafter(65520.f, 0.f), 0x4780, 0x7bff},
               {65520, 0x4780, 0x7c00},
               {-1e6f, 0xc974, 0xfc00},
               {3.39e38f, 0x7f7f, 0x7c00},
               {std::numeric_limits<float>::max(), 0x7f80, 0x7c00},
               {HUGE_VALF, 0x7f80, 0x7c00},
               {least, 0x3380, 0x0001},
               {least / 2, 0x3300, 0x0000},
               {std::nextafter(least / 2, 1.f), 0x3300, 0x0001},
               {0x1.ffcp-15f, 0x3880, 0x0400},  // the largest of the small ones is a tie
               {1e-40f, 0x0001, 0x0000},
               {std::numeric_limits<float>::quiet_NaN(), 0x7fc0, 0x7e00}};
  std::vector<float> values;
  for (const auto& c : cases) values.push_back(c.value);
  const any_array a = any_array::view(
      dtype::float32, dims{static_cast<std::int64_t>(values.size())}, values.data());
  write_safetensors(path, {{"brain", a}, {"half", a}, {"wide", a}},
                    {.types = {{"brain", "BF16"}, {"half", "F16"}, {"not here", "F16"}},
                     .metadata = {{"format", "pt"}}});
  const safetensors_file file(path);
  CHECK(file.metadata() == std::map<std::string, std::string>{{"format", "pt"}});
  CHECK(file.entries().at("wide").type == "F32");
  const std::string bytes = testing::read_bytes(path);
  for (const std::string name : {"brain", "half"}) {
    const safetensors_entry& e = file.entries().at(name);
    CHECK(e.type == (name == "half" ? "F16" : "BF16"));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint16_t written = 0;
      std::memcpy(&written, bytes.data() + e.begin + 2 * i, sizeof written);
      CAPTURE(values[i]);
      CHECK(written == (name == "half" ? cases[i].half : cases[i].brain));
    }
  }
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const auto h = static_cast<std::uint16_t>(bits);
    if (!std::isnan(from_float16(h))) REQUIRE(to_float16(from_float16(h)) == h);
    if (!std::isnan(from_bfloat16(h))) REQUIRE(to_bfloat16(from_bfloat16(h)) == h);
  }
}

TEST_CASE("an array is not written with elements of another type than it can have") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  const auto refusal = [&](const any_array& a, const std::string& type) {
    return error_of([&] { write_safetensors(path, {{"a", a}}, {.types = {{"a", type}}}); });
  };
  const std::string begin = "invalid_argument: [safetensors] " + path + ": cannot hold \"a\": ";
  CHECK(refusal(any_array::scalar(1.0), "F16") ==
        begin + "it is to be stored as F16, and is an array of double, not of half");
  CHECK(refusal(any_array::scalar(1.f), "F64") ==
        begin + "it is to be stored as F64, and is an array of float, not of double");
  CHECK(refusal(any_array::scalar(1.f), "F8") ==
        begin + "it is to be stored as F8, and is an array of float");
  CHECK(refusal(any_array::scalar(1.f), "F32").empty());
  CHECK(error_of([&] {
          write_safetensors(path, {}, {.metadata = {{"k", "\xff"}}});
        }) == "invalid_argument: [safetensors] " + path +
                  ": cannot hold the metadata \"k\": it is not valid UTF-8");
}

TEST_CASE("arrays of a mapped file are the file, and keep it") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  std::map<std::string, any_array> arrays = some_arrays();
  arrays.emplace("half", ndarray<float16, 3>{1, 2, 3}.array());
  write_safetensors(path, arrays);
  const auto read = read_safetensors(path, {.access = file_access::mapped});
  CHECK(read == arrays);
  const std::vector<std::string> copied{"flags"};
  for (const auto& [key, a] : read) {
    const std::string& name = key;
    CAPTURE(name);
    CHECK(a.storage().unique() == (std::ranges::count(copied, name) > 0));
    CHECK_FALSE(a.storage().is_borrowed());
  }
  const safetensors_model model(path);
  CHECK(model.read("layer1/w").raw() == model.read("layer1/w").raw());
  std::filesystem::remove(path);
  any_array w = model.read("layer1/w");
  const float* const pages = w.data<float>();
  w.mutable_data<float>()[0] = 7;  // a copy
  CHECK(w.data<float>() != pages);
  CHECK(pages[0] == 1);
  CHECK(model.read("layer1/w") == arrays.at("layer1/w"));
}

TEST_CASE("a mapped array that is not at a multiple of its elements' size is copied") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  write_with(path,
             R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
             R"("c":{"dtype":"F32","shape":[0,2],"data_offsets":[5,5]}})",
             std::string("x\0\0\x80\x3f", 5));
  const auto read = read_safetensors(path, {.access = file_access::mapped});
  CHECK(read.at("b").item<float>() == 1);
  CHECK(read.at("b").storage().unique());
  CHECK(read.at("c").shape() == dims{0, 2});
}

TEST_CASE("a mapped array is compared with its checksum") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  write_safetensors(path, {{"a", ndarray<float, 1000>().array()}});
  std::string bytes = testing::read_bytes(path);
  bytes.back() = 1;
  testing::write_bytes(path, bytes);
  CHECK(error_of([&] { safetensors_model(path).read("a"); }) ==
        "data_loss: [safetensors] " + path + ": the checksum of \"a\" is wrong");
}

TEST_CASE("names are chosen by patterns") {
  const temporary_folder folder;
  const std::string path = folder / "x.safetensors";
  const any_array a = any_array::scalar(1.f);
  write_safetensors(path, {{"encoder.layer.0.weight", a},
                           {"encoder.layer.0.bias", a},
                           {"encoder.layer.11.weight", a},
                           {"pooler.weight", a}});
  const auto names = [&](std::vector<std::string> patterns) {
    std::vector<std::string> found;
    for (const auto& [name, value] : read_safetensors(path, {.names = patterns}))
      found.push_back(name);
    return found;
  };
  using list = std::vector<std::string>;
  CHECK(names({"encoder.layer.*.weight"}) ==
        list{"encoder.layer.0.weight", "encoder.layer.11.weight"});
  CHECK(names({"pooler.*", "*.?.bias"}) == list{"encoder.layer.0.bias", "pooler.weight"});
  CHECK(names({"*"}).size() == 4);
  CHECK(safetensors_model(path).names("*.11*") == list{"encoder.layer.11.weight"});
  CHECK(error_of([&] {
          names({"*.weight", "decoder.*"});
        }) ==
        "not_found: [safetensors] " + path + " has no array whose name matches \"decoder.*\"");
}

TEST_CASE("a model in several files is read by its index, or its directory") {
  const temporary_folder folder;
  const any_array a = any_array::scalar(1.f), b = any_array::scalar(2.f);
  const std::string one = "model-00001-of-00002.safetensors",
                    two = "model-00002-of-00002.safetensors";
  const std::string index = folder / "model.safetensors.index.json";
  const auto write_index = [&](const std::string& text) { testing::write_bytes(index, text); };
  write_safetensors(folder / one, {{"a", a}}, {.metadata = {{"format", "pt"}}});
  write_safetensors(folder / two, {{"b", b}, {"c", b}}, {.types = {{"b", "F16"}}});
  write_index(R"({"metadata":{"total_size":8},"weight_map":{"a":")" + one + R"(","b":")" + two +
              R"(","c":")" + two + R"("}})");
  const std::map<std::string, any_array> all{
      {"a", a}, {"b", any_array::scalar(float16(2))}, {"c", b}};
  CHECK(read_safetensors(index) == all);
  CHECK(read_safetensors(folder.path().string()) == all);
  CHECK(read_safetensors(folder.path().string(), {.names = {"b"}}).size() == 1);
  const safetensors_model model(folder.path().string());
  CHECK(model.types() ==
        std::map<std::string, std::string>{{"a", "F32"}, {"b", "F16"}, {"c", "F32"}});
  CHECK(model.metadata().at("format") == "pt");
  CHECK(error_of([&] { model.read("d"); }) ==
        "not_found: [safetensors] " + index + " has no array \"d\"");

  const auto failure = [&](const std::string& text) {
    write_index(text);
    return error_of([&] { safetensors_model{index}; });
  };
  const std::string begin = "data_loss: [safetensors] " + index;
  CHECK(failure("{").starts_with(begin + " is not JSON"));
  CHECK(failure("{}") == begin + ": it has no object \"weight_map\"");
  CHECK(failure(R"({"weight_map":{"d":")" + one + R"("}})") ==
        begin + ": " + one + " has no array \"d\"");
  CHECK(failure(R"({"weight_map":{"a":")" + one + R"(","a":")" + two + R"("}})")
            .starts_with(begin + " has the key \"a\" twice"));
  for (const std::string file : {"../x.safetensors", "/x.safetensors", "x.bin", ""})
    CHECK(failure(R"({"weight_map":{"a":")" + file + R"("}})") ==
          begin + ": the file of \"a\" is \"" + file + "\"; expected one in the same directory");
  CHECK(failure(R"({"weight_map":{"a":"none.safetensors"}})").starts_with("not_found: "));
  std::filesystem::remove(index);
  const file_roots elsewhere({std::filesystem::temp_directory_path() / "."});
  CHECK(error_of([&] { safetensors_model("/", elsewhere); }).starts_with("permission_denied: "));
  CHECK(error_of([&] { read_safetensors(folder.path().string()); }).find("several files") !=
        std::string::npos);
  std::filesystem::remove(folder / two);
  CHECK(read_safetensors(folder.path().string()).size() == 1);
  std::filesystem::remove(folder / one);
  CHECK(error_of([&] { read_safetensors(folder.path().string()); }) ==
        "not_found: [safetensors] " + folder.path().string() + " has no file *.safetensors");
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
