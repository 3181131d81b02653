// SPDX-License-Identifier: Apache-2.0
#include <deft/data/example.hpp>

#include "../testing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;

TEST_CASE("features are read back as they were set") {
  const std::string bytes = example()
                                .set("name", "seven")
                                .set("words", std::vector<std::string>{"a", "", "c\0d"})
                                .set("pixels", std::vector<float>{0.5f, -1, 3e30f})
                                .set("label", 7)
                                .set("rate", 0.25)
                                .set("sizes", std::vector<std::int64_t>{-1, 1LL << 40, 0})
                                .set("none", std::vector<float>{})
                                .encode();
  const example_view v(bytes);
  CHECK(v.one_bytes("name") == "seven");
  CHECK(v.bytes("words") == std::vector<std::string_view>{"a", "", "c"});
  CHECK(v.floats("pixels") == std::vector<float>{0.5f, -1, 3e30f});
  CHECK(v.one_integer("label") == 7);
  CHECK(v.one_float("rate") == 0.25f);
  CHECK(v.integers("sizes") == std::vector<std::int64_t>{-1, 1LL << 40, 0});
  CHECK(v.floats("none").empty());
  CHECK(v.has("label"));
  CHECK(!v.has("lab"));
  float pixels[3];
  v.read("pixels", pixels);
  CHECK(pixels[2] == 3e30f);
  std::int64_t sizes[3];
  v.read("sizes", sizes);
  CHECK(sizes[0] == -1);
}

TEST_CASE("an example has the bytes that TensorFlow writes") {
  CHECK(example().set("a", 300).encode() ==
        std::string("\x0a\x0d\x0a\x0b\x0a\x01\x61\x12\x06\x1a\x04\x0a\x02\xac\x02", 15));
  // A feature without values has a kind all the same.
  const auto empty = [](const example& e) { return e.encode(); };
  CHECK(empty(example().set("x", std::vector<std::string>{})) ==
        "\x0a\x09\x0a\x07\x0a\x01x\x12\x02\x0a" + std::string(1, '\0'));
  CHECK(empty(example().set("x", std::vector<float>{})) ==
        "\x0a\x09\x0a\x07\x0a\x01x\x12\x02\x12" + std::string(1, '\0'));
  CHECK(empty(example().set("x", std::vector<std::int64_t>{})) ==
        "\x0a\x09\x0a\x07\x0a\x01x\x12\x02\x1a" + std::string(1, '\0'));
  const std::string none = example().set("x", std::vector<float>{}).set("y", 1).encode();
  CHECK(example_view(none).floats("x").empty());
  CHECK(example_view(none).one_integer("y") == 1);
  CHECK(error_of([&] { example_view(none).integers("x"); }) ==
        "invalid_argument: [example] feature \"x\" has floats, not integers");
  CHECK(example_view(example().encode()).has("x") == false);
  // Numbers that are not packed, as older writers have them.
  const std::string loose("\x0a\x0e\x0a\x0c\x0a\x01\x61\x12\x07\x1a\x05\x08\xac\x02\x08\x01", 16);
  CHECK(example_view(loose).integers("a") == std::vector<std::int64_t>{300, 1});
}

TEST_CASE("what is wrong with a feature is said") {
  for (const auto& set :
       {+[](example& e) { e.set("f\xfcr", 1); }, +[](example& e) { e.set("f\xfcr", "text"); },
        +[](example& e) { e.set("f\xfcr", std::vector<float>{}); }}) {
    example e;
    CHECK(error_of([&] { set(e); }) ==
          "invalid_argument: [example] \"f\\xfcr\" is not a valid name of a feature: it is not "
          "UTF-8");
  }
  const std::string bytes = example().set("label", 7).set("name", "x").encode();
  const example_view v(bytes);
  CHECK(error_of([&] { v.one_integer("lable"); }) ==
        "not_found: [example] it has no feature \"lable\"; it has label, name");
  CHECK(error_of([&] { v.floats("label"); }) ==
        "invalid_argument: [example] feature \"label\" has integers, not floats");
  CHECK(error_of([&] { v.one_integer("name"); }) ==
        "invalid_argument: [example] feature \"name\" has bytes, not integers");
  std::int64_t two[2];
  CHECK(error_of([&] { v.read("label", two); }) ==
        "invalid_argument: [example] feature \"label\" has 1 values, not 2");
  example_view other;
  CHECK(error_of([&] { other.parse("\xff\xff"); }).starts_with("data_loss: [example] the message"));
  for (std::size_t cut = 1; cut < bytes.size(); ++cut)
    error_of([&] { example_view(bytes.substr(0, cut)).one_integer("label"); });
}

TEST_CASE("a field of the wrong wire type is malformed") {
  // In the message, the map, an entry's key and its value.
  for (const std::string& encoded :
       {std::string("\x08\2\x0a\0", 4), std::string("\x0a\2\x08\0", 4),
        std::string("\x0a\4\x0a\2\x08\0", 6), std::string("\x0a\4\x0a\2\x10\0", 6)})
    CHECK(error_of([&] { example_view v(encoded); }) ==
          "data_loss: [example] the message is malformed: a field has the wrong wire type");

  const auto with_length = [](char tag, const std::string& bytes) {
    return str(tag, static_cast<char>(bytes.size()), bytes);
  };
  const auto reading = [&](const std::string& feature, auto get) {
    const std::string entry = "\x0a\1a" + with_length('\x12', feature);
    const std::string encoded = with_length('\x0a', with_length('\x0a', entry));
    return error_of([&] { get(example_view(encoded)); });
  };
  const std::string malformed =
      "data_loss: [example] feature \"a\" is malformed: a field has the wrong wire type";
  // A list, and a value in it.
  for (const char* feature : {"\x08\1", "\x0a\2\x08\1"}) {
    CHECK(reading(feature, [](const example_view& v) { v.bytes("a"); }) == malformed);
    CHECK(reading(feature, [](const example_view& v) { v.one_bytes("a"); }) == malformed);
  }
  for (const char* feature : {"\x15\1\1\1\1", "\x12\2\x08\1"})
    CHECK(reading(feature, [](const example_view& v) { v.floats("a"); }) == malformed);
  for (const char* feature : {"\x1d\1\1\1\1", "\x1a\5\x0d\1\1\1\1"})
    CHECK(reading(feature, [](const example_view& v) { v.integers("a"); }) == malformed);
}
