// SPDX-License-Identifier: Apache-2.0
#include <deft/graph/serialize.hpp>
#include <deft/transport/archive.hpp>
#include <deft/transport/xml.hpp>
#include <random>
#include <testing.hpp>

#include "graph/edit.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;

namespace {

/// x * y + x as a program.
program_ref multiply_add() {
  auto p = std::make_shared<program>();
  p->inputs = {dtype::float32, dtype::float32, dtype::float32};
  p->code.push_back({find_op("mul"), dtype::float32, {0, 1}, 2});
  p->code.push_back({find_op("add"), dtype::float32, {3, 2}, 2});
  p->seal();
  return p;
}

node_def feed_node(std::int64_t index, const dims& shape) {
  node_def n;
  n.op = find_op("feed");
  n.attributes = {index, static_cast<std::int64_t>(dtype::float32),
                  integers(shape.begin(), shape.end())};
  n.outputs = {{shape, dtype::float32}};
  n.name = str("x_", index);
  return n;
}

/// Two feeds, and a chain of additions and products over them.
graph_def chain(std::uint32_t length) {
  graph_def g;
  g.nodes.push_back(feed_node(0, {dyn, 3}));
  g.nodes.push_back(feed_node(1, {dyn, 3}));
  for (std::uint32_t i = 2; i < length; ++i) {
    node_def n;
    n.op = find_op(i % 2 ? "add" : "mul");
    n.inputs = {{i - 1, 0}, {i - 2, 0}};
    if (i % 3 == 0) n.controls = {0, i - 1};
    n.outputs = {{dims{dyn, 3}, dtype::float32}};
    n.requested = intern(parse_device("/job:ps"));
    n.device = intern(parse_device("/job:ps/replica:0/task:0/cpu:0"));
    n.name = str("layer", i / 10, "/node_", i);
    n.location = {"examples/model.cpp", 10 + i};
    g.nodes.push_back(std::move(n));
  }
  return g;
}

function_ref twice_its_parameter() {
  auto f = std::make_shared<function_def>();
  f->name = "twice";
  f->parameters = {{dims{dyn, 3}, dtype::float32}};
  f->body.nodes.push_back(feed_node(0, {dyn, 3}));
  node_def sum;
  sum.op = find_op("add");
  sum.inputs = {{0, 0}, {0, 0}};
  sum.outputs = f->parameters;
  f->body.nodes.push_back(std::move(sum));
  f->results = {{1, 0}, {1, run_only}};
  f->call = 7;
  f->seal();
  return f;
}

/// A node with attributes of every kind, which need not pass a shape rule.
node_def odd_node() {
  node_def n;
  n.op = find_op("constant");
  any_array array(dtype::int32, dims{2, 2});
  for (int i = 0; i < 4; ++i) array.mutable_data<std::int32_t>()[i] = i;
  n.attributes = {std::int64_t{-7},
                  0.1,
                  std::string("text"),
                  integers{1, -1},
                  array,
                  multiply_add(),
                  strings{"a", "b c", ""},
                  twice_its_parameter(),
                  tensor_types{{dims{2, dyn}, dtype::float32}, {dims{}, dtype::boolean}}};
  n.name = "odd";
  return n;
}

bool same(const node_def& a, const node_def& b) {
  return a.op == b.op && same_attributes(a.attributes, b.attributes) && a.inputs == b.inputs &&
         a.controls == b.controls && a.outputs == b.outputs && a.requested == b.requested &&
         a.device == b.device && a.name.str() == b.name.str() &&
         std::string_view(a.location.file) == b.location.file && a.location.line == b.location.line;
}

graph_def load(std::span<const std::byte> bytes) {
  graph_def g;
  from_bytes(bytes, g);
  return g;
}

}  // namespace

TEST_CASE("a graph is read back as it was written, with the same pointers for devices") {
  graph_def g = chain(100);
  validate(g);
  g.nodes.push_back(odd_node());
  graph_def back = load(to_bytes(g));
  REQUIRE(back.nodes.size() == g.nodes.size());
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    CAPTURE(i);
    CHECK(same(g.nodes[i], back.nodes[i]));
  }
  CHECK(load(to_bytes(graph_def())).nodes.empty());
}

TEST_CASE("a received graph passes the same checks as one that is built") {
  validate(load(to_bytes(chain(50))));
  graph_def bad = chain(50);
  bad.nodes[20].inputs[0].node = 30;
  CHECK(error_of([&] { validate(load(to_bytes(bad))); }).find("comes after its use") !=
        std::string::npos);
  bad = chain(50);
  testing::edit(bad.nodes[20].outputs, [](auto& o) { o[0].type = dtype::int64; });
  CHECK(error_of([&] { validate(load(to_bytes(bad))); }).starts_with("invalid_argument"));
}

TEST_CASE("an operation that this process does not have is named") {
  static const op_def foreign = [] {
    op_def d;
    d.name = "conv9d";
    return d;
  }();
  graph_def g = chain(3);
  g.nodes[2].op = &foreign;
  CHECK(error_of([&] { load(to_bytes(g)); }) ==
        "not_found: this process has no operation \"conv9d\"");
}

TEST_CASE("a program is checked and sealed when it arrives") {
  auto p = multiply_add();
  program back;
  from_bytes(to_bytes(*p), back);
  CHECK(back.signature == p->signature);
  CHECK(back.hash == p->hash);

  program bad = *p;
  bad.code[0].args[1] = 4;
  CHECK(error_of([&] { from_bytes(to_bytes(bad), back); }) ==
        "invalid_argument: [fused] instruction 0 uses value 4 before it is computed");
  bad = *p;
  bad.code[0].op = find_op("matmul");
  CHECK(error_of([&] { from_bytes(to_bytes(bad), back); }).starts_with("invalid_argument"));
  bad = *p;
  bad.code[0].count = 3;
  CHECK(error_of([&] { from_bytes(to_bytes(bad), back); }).starts_with("invalid_argument"));
  CHECK(error_of([&] { from_bytes(to_bytes(program()), back); }) ==
        "invalid_argument: [fused] a program without instructions");
  attr_value none = program_ref();
  CHECK(error_of([&] { from_bytes(to_bytes(none), none); }).starts_with("invalid_argument"));
}

TEST_CASE("invalid kinds of attributes, shapes and devices are refused") {
  attr_value v;
  CHECK(error_of([&] { from_bytes(to_bytes(std::uint8_t{9}), v); }) ==
        "invalid_argument: unknown kind of attribute: 9");
  tensor_type t;
  CHECK(error_of([&] {
          from_bytes(to_bytes(tensor_type{dims{-2}, dtype::float32}), t);
        }) == "invalid_argument: received an extent of -2");
  std::int64_t big = std::int64_t{1} << 31;
  CHECK(error_of([&] {
          from_bytes(to_bytes(tensor_type{dims{big, 0, big, big}, dtype::float32}), t);
        }) == "invalid_argument: received a shape larger than any memory");
  auto bytes = to_bytes(chain(3));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  bytes[text.find("/job:ps/replica")] = std::byte{'!'};
  CHECK(error_of([&] { load(bytes); }).starts_with("invalid_argument"));
}

TEST_CASE("every truncation of a graph is refused") {
  graph_def g = chain(6);
  g.nodes.push_back(odd_node());
  auto bytes = to_bytes(g);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    CAPTURE(n);
    CHECK(!error_of([&] { load(std::span(bytes).first(n)); }).empty());
  }
}

TEST_CASE("mutated graphs end in an error, or in a graph that passes or fails its check") {
  graph_def g = chain(12);
  const auto plain = to_bytes(g);
  g.nodes.push_back(odd_node());
  const auto odd = to_bytes(g);
  std::mt19937 random(2024);
  auto below = [&](std::size_t n) { return random() % n; };
  const std::byte interesting[] = {std::byte{0},    std::byte{1},    std::byte{0x7f},
                                   std::byte{0x80}, std::byte{0xfe}, std::byte{0xff}};
  int loaded = 0, passed = 0;
  for (int round = 0; round < 40'000; ++round) {
    auto bytes = round % 2 ? odd : plain;
    for (auto changes = 1 + below(4); changes > 0; --changes) {
      std::size_t at = below(bytes.size());
      switch (below(6)) {
        case 0:
          bytes[at] = static_cast<std::byte>(random());
          break;
        case 1:
          bytes[at] = interesting[below(std::size(interesting))];
          break;
        case 2:
          bytes[at] ^= static_cast<std::byte>(1u << below(8));
          break;
        case 3:  // repeats a piece at another position
          for (std::size_t from = below(bytes.size()), n = below(32);
               n > 0 && at < bytes.size() && from < bytes.size(); --n)
            bytes[at++] = bytes[from++];
          break;
        case 4:
          bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
          break;
        case 5:
          bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                       static_cast<std::byte>(random()));
          break;
      }
    }
    try {
      graph_def read = load(bytes);
      ++loaded;
      validate(read);
      ++passed;
    } catch (const error&) {
      // Refused with a message.
    }
  }
  CHECK(loaded > 1'000);
  CHECK(passed > 100);
  CHECK(loaded > passed);
}

TEST_CASE("a graph can be written as readable XML") {
  graph_def g = chain(3);
  g.nodes.push_back(odd_node());
  std::string xml = to_xml(g);
  for (const char* part :
       {"<op>mul</op>", "<name>layer0/node_2</name>", "<requested>/job:ps</requested>",
        "<device>/job:ps/replica:0/task:0/cpu:0</device>", "<type>float</type>",
        "<extent>-1</extent>", "<file>examples/model.cpp</file>", "<value>text</value>",
        "<op>add</op>", "<line>12</line>"}) {
    CAPTURE(part);
    CHECK(xml.find(part) != std::string::npos);
  }
}

TEST_CASE("received file names are kept by their nodes only, and are not longer than 1 KB") {
  std::weak_ptr<const std::string> name;
  {
    const auto one = detail::file_of_wire("a.cpp");
    CHECK(*one == "a.cpp");
    CHECK(detail::file_of_wire("a.cpp") == one);  // as the nodes that come in a row
    name = one;
  }
  CHECK(name.expired());
  CHECK(*detail::file_of_wire(std::string(1025, 'a')) == "?");
}

TEST_CASE("the number of received device names is not bounded, as none is kept") {
  const placement one = detail::device_of_wire("/job:a/task:1");
  const auto before = detail::interned_names();
  for (int i = 0; i < 100'000; ++i) {
    const placement p = detail::device_of_wire(str("/job:a/task:", i));
    if (i == 1) CHECK(p == one);
  }
  CHECK(detail::interned_names() <= before + 1);  // the last one is remembered
  CHECK(detail::device_of_wire("/job:a/task:1") == one);
}

TEST_CASE("a received device name that is too long is refused by name") {
  const auto e = testing::error_of(
      [] { detail::device_of_wire("/job:" + std::string(2000, 'a') + "/task:0"); });
  CHECK(e.starts_with("resource_exhausted: the device name \"/job:aaa"));
  CHECK(e.size() < 200);
}

TEST_CASE("functions are read back in functions, to a depth that has a limit") {
  const auto nested = [](int depth) {
    function_ref f = twice_its_parameter();
    for (int i = 0; i < depth; ++i) {
      auto around = std::make_shared<function_def>(*twice_its_parameter());
      around->body.nodes[1].attributes = {f};  // which no shape rule is asked about here
      around->seal();
      f = std::move(around);
    }
    graph_def g;
    g.nodes.push_back(feed_node(0, {3}));
    g.nodes[0].attributes = {f};
    return g;
  };
  const graph_def g = nested(10), back = load(to_bytes(g));
  CHECK(same(g.nodes[0], back.nodes[0]));
  const auto& f = std::get<function_ref>(back.nodes[0].attributes[0]);
  CHECK(f->hash == std::get<function_ref>(g.nodes[0].attributes[0])->hash);
  CHECK(f->values() == 1);
  CHECK(error_of([&] { load(to_bytes(nested(60))); }).find("nested deeper") != std::string::npos);
}
