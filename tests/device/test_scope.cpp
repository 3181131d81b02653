// SPDX-License-Identifier: Apache-2.0
// tests/device/test_scope.cpp: scopes nest, resolve, end in order, and can be captured.
#include <deft/device/scope.hpp>
// its own header comes first, to check that it is self-contained
#include <doctest/doctest.h>
#include <deft/core/error.hpp>
#include <deft/core/log.hpp>
#include <deft/graph/graph.hpp>
#include <optional>
#include <thread>

using namespace deft;
using namespace deft::ext;

static std::string placed(std::string_view op = "add", std::string_view name = "add") {
  placement d = resolve_device(current_scope(), {op, name, dtype::float32});
  return d ? to_string(*d) : "";
}

namespace {
/// Collects log lines while it lives.
struct log_catcher {
  log_catcher() {
    lines().clear();
    logging::set_sink([](logging::level, const std::string& s) { lines().push_back(s); });
  }
  ~log_catcher() { logging::set_sink(nullptr); }
  static std::vector<std::string>& lines() {
    static std::vector<std::string> l;
    return l;
  }
};
}  // namespace

TEST_CASE("on() restores the previous device") {
  CHECK(placed() == "");
  {
    auto outer = on(device("/job:ps/task:0"));
    CHECK(placed() == "/job:ps/task:0");
    {
      auto inner = on(device("/gpu:1"));
      CHECK(placed() == "/job:ps/task:0/gpu:1");
    }
    CHECK(placed() == "/job:ps/task:0");
  }
  CHECK(placed() == "");
  CHECK_FALSE(current_scope());
}

TEST_CASE("a scope is the block of an if, or of a call") {
  if (auto gpu = on(device("/gpu:1"))) CHECK(placed() == "/gpu:1");
  CHECK(placed() == "");
  CHECK(on(device("/cpu:0"), [] { return placed(); }) == "/cpu:0");
  int x = 0;
  int& same = on(device("/cpu:0"), [&]() -> int& { return x; });
  CHECK(&same == &x);
  on(device("/cpu:0"), [&] { x = 1; });
  CHECK(x == 1);
  CHECK_THROWS_AS(on(device("/cpu:0"), []() -> int { throw 1; }), int);
  CHECK(placed() == "");
}

TEST_CASE("an empty device changes nothing, nullptr clears, and later scopes add") {
  auto outer = on(device("/job:ps/gpu:0"));
  {
    auto s = on(device(""));
    CHECK(placed() == "/job:ps/gpu:0");
    CHECK(s);
  }
  {
    auto s = on(device(nullptr));
    CHECK(placed() == "");
    auto t = on(device("/cpu:1"));
    CHECK(placed() == "/cpu:1");
  }
  CHECK(placed() == "/job:ps/gpu:0");
  CHECK_THROWS_AS(static_cast<void>(device("gpu:0")), error);
}

TEST_CASE("a scope takes a parsed device too") {
  device_name d;
  d.type = "gpu";
  d.index = 2;
  auto s = on(device(d));
  CHECK(placed() == "/gpu:2");
  CHECK(current_scope()->device == intern(d));
}

TEST_CASE("device functions run innermost first, and fill in what is not set") {
  std::string order;
  auto job = on(device("/job:worker/gpu:3"));
  auto outer = on(device([&](const node_info& n) {
    order += "outer(" + (n.device ? to_string(*n.device) : "") + ")";
    return n.op == "variable" ? "/job:ps/task:1/cpu:0" : "/cpu:0";
  }));
  CHECK(placed("variable") == "/job:ps/task:1/cpu:0");
  CHECK(placed("add") == "/job:worker/cpu:0");
  order.clear();
  auto plain = on(device("/task:5"));
  auto inner = on(device([&](const node_info& n) {
    order += "inner(" + (n.device ? to_string(*n.device) : "") + ")";
    return n.name == "here" ? "/gpu:0" : "";
  }));
  CHECK(placed("variable", "here") == "/job:ps/task:5/gpu:0");
  CHECK(order == "inner()outer(/task:5/gpu:0)");
  CHECK(placed("variable") == "/job:ps/task:5/cpu:0");
  {
    auto innermost = on(device("/cpu:7"));
    CHECK(placed("variable", "here") == "/job:ps/task:5/cpu:7");
  }
  order.clear();
  auto cleared = on(device(nullptr));
  CHECK(placed("variable") == "");
  auto again = on(device([](const node_info&) { return std::string("/cpu:9"); }));
  CHECK(placed("variable") == "/cpu:9");
  CHECK(order.empty());
}

TEST_CASE("a device function that returns a malformed name is an error that shows it") {
  auto s = on(device([](const node_info&) { return "gpu0"; }));
  CHECK_THROWS_WITH_AS(placed(), doctest::Contains("malformed device name \"gpu0\""), error);
}

TEST_CASE("name scopes are joined, replaced or left") {
  auto prefix = [] { return current_scope() ? current_scope()->name_prefix : ""; };
  auto a = name_scope("layer1");
  CHECK(prefix() == "layer1/");
  {
    auto b = name_scope("dense.0");
    CHECK(prefix() == "layer1/dense.0/");
    auto d = on(device("/cpu:0"));
    CHECK(prefix() == "layer1/dense.0/");
    auto c = name_scope("_private/x");
    CHECK(prefix() == "layer1/dense.0/_private/x/");
    auto absolute = name_scope("other/");
    CHECK(prefix() == "other/");
    CHECK(placed() == "/cpu:0");
    auto root = name_scope("");
    CHECK(prefix() == "");
    CHECK_THROWS_WITH_AS(
        static_cast<void>(name_scope("-x")),
        "[name_scope] \"-x\" is not a valid name: '-' at character 1 may not come first", error);
  }
  CHECK(prefix() == "layer1/");
  CHECK_THROWS_WITH_AS(static_cast<void>(name_scope("a b")),
                       "[name_scope] \"a b\" is not a valid name: ' ' at character 2 is not a "
                       "letter, digit or one of \"_.-/>\"",
                       error);
}

TEST_CASE("control dependencies are inherited and replaced") {
  control_scope a({});
  const auto first = current_scope()->controls;
  REQUIRE(first != nullptr);
  {
    auto d = on(device("/cpu:0"));
    CHECK(current_scope()->controls == first);
    scope none(push_controls{nullptr});
    CHECK(current_scope()->controls == nullptr);
  }
  CHECK(current_scope()->controls == first);
}

TEST_CASE("a captured scope outlives its block and can be adopted") {
  scope_ref kept;
  {
    auto a = on(device("/job:ps"));
    auto b = name_scope("x");
    auto c = on(device([](const node_info&) { return "/gpu:0"; }));
    kept = current_scope();
  }
  auto other = on(device("/cpu:5"));
  std::thread([&] {
    CHECK_FALSE(current_scope());
    auto s = adopt_scope(kept);
    CHECK(current_scope() == kept);
    CHECK(placed() == "/job:ps/gpu:0");
    CHECK(current_scope()->name_prefix == "x/");
    auto t = on(device("/gpu:1"));
    CHECK(placed() == "/job:ps/gpu:1");
  }).join();
  {
    auto s = adopt_scope({});
    CHECK(placed() == "");
  }
  CHECK(placed() == "/cpu:5");
}

TEST_CASE("a scope that ends too early is logged, and ends those within it") {
  log_catcher log;
  std::optional<scope> outer, inner;
  outer.emplace(device("/cpu:1"));
  inner.emplace(device("/cpu:2"));
  outer.reset();
  CHECK(placed() == "");
  REQUIRE(log.lines().size() == 1);
  CHECK(log.lines()[0] ==
        "a scope ended before 1 that began within it: scopes must end in reverse order");
  auto next = on(device("/cpu:3"));
  inner.reset();
  CHECK(placed() == "/cpu:3");
  CHECK(log.lines().size() == 1);
}

TEST_CASE("a scope that ends on another thread is logged, and its own thread removes it") {
  log_catcher log;
  auto below = on(device("/job:a"));
  {
    std::optional<scope> stray;
    stray.emplace(device("/cpu:1"));
    auto above = on(device("/cpu:2"));
    std::thread([&] { stray.reset(); }).join();
    REQUIRE(log.lines().size() == 1);
    CHECK(log.lines()[0].find("another thread") != std::string::npos);
    CHECK(placed() == "/job:a/cpu:2");
  }
  CHECK(placed() == "/job:a");
  CHECK(log.lines().size() == 1);
  {
    auto around = on(device("/job:b"));
    std::optional<scope> stray;
    stray.emplace(device("/cpu:1"));
    std::thread([&] { stray.reset(); }).join();
  }
  CHECK(placed() == "/job:a");
  CHECK(log.lines().size() == 2);
}

TEST_CASE("ten thousand nested scopes are created and freed") {
  auto nest = [](auto& self, int n) -> scope_ref {
    if (n == 0) return current_scope();
    scope s(push_controls{nullptr});
    return self(self, n - 1);
  };
  scope_ref kept = nest(nest, 10'000);
  int depth = 0;
  for (const scope_frame* f = kept.get(); f; f = f->parent.get()) ++depth;
  CHECK(depth == 10'000);
}
