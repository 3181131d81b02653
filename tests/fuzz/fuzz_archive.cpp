// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzz_archive.cpp: whatever metadata says, it is loaded or refused; what was loaded is
// the same after it was saved and loaded again. An input is a byte that chooses what is loaded, and
// metadata.
#include <deft/deft.hpp>
#include <deft/session/wire/codec.hpp>

#include "fuzzing.hpp"

using namespace deft;
using namespace deft::ext;
using fuzzing::bytes;

namespace {

/// What messages refer to.
std::vector<any_array> attached() {
  any_array constant(dtype::float32, dims{300});
  std::memset(constant.mutable_raw(), 0, constant.bytes());
  return {constant, any_array::scalar(1.f)};
}

void compare(const bytes& once, const bytes& twice, const char* what) {
  if (once != twice) fuzzing::found(what, " is another once it was saved and loaded");
}

/// Loads again what was saved. What was at a limit may exceed it then: "/gpu" is saved as "/gpu:*".
template <class F>
void again(F&& f, const char* what) {
  try {
    f();
  } catch (const error& e) {
    if (e.code() != errc::resource_exhausted)
      fuzzing::found(what, " cannot be loaded once it was saved: ", e.what());
  }
}

template <class T>
void load(std::span<const std::byte> from, const char* what) {
  T value{};
  if (!fuzzing::accepted([&] { from_bytes(from, value); })) return;
  const bytes once = to_bytes(value);
  again(
      [&] {
        T copy{};
        from_bytes(once, copy);
        compare(once, to_bytes(copy), what);
      },
      what);
}

template <class M>
void unpack(std::span<const std::byte> from, const char* what) {
  message m(message_kind::reply);
  m.session = 1, m.step = 2, m.flags = 1;
  m.meta.assign(from.begin(), from.end());
  m.tensors = attached();
  M value;
  if (!fuzzing::accepted([&] { value = wire::unpack<M>(m); })) return;
  const message once = wire::pack(std::move(value));
  again(
      [&] {
        message sent = once;
        const message twice = wire::pack(wire::unpack<M>(sent));
        compare(once.meta, twice.meta, what);
      },
      what);
}

template <class M>
bytes packed(M&& m) {
  return wire::pack(m).meta;
}

struct target {
  const char* name;
  void (*run)(std::span<const std::byte>, const char*);
  bytes (*seed)();
};

flat_graph some_graph() {
  graph g;
  auto in = as_default(g);
  auto scope = on(device("/job:worker/task:0"));
  placeholder<float, dyn, 6> x("x");
  variable<float, 6, 4> w("w", truncated_normal(0.1));
  any_tensor y = relu(matmul(x, w) * 2.f);
  const output fetched[] = {y.handle(), {w.assign_add(1.f).handle(), run_only}};
  return flatten(fetched, {});
}

plan::part some_part() {
  const auto flat = some_graph();
  plan::part p;
  p.task = intern(task_name("worker", 0));
  p.graph = flat.graph;
  p.fetches = flat.fetches;
  return p;
}

const target targets[] = {
    {"scalars", load<std::tuple<bool, std::int8_t, std::uint64_t, double, errc>>,
     [] {
       return to_bytes(
           std::tuple(true, std::int8_t{-1}, std::uint64_t{1} << 60, 0.5, errc::internal));
     }},
    {"containers",
     load<std::tuple<std::vector<std::string>, std::optional<std::vector<bool>>,
                     std::vector<std::pair<std::string, std::uint64_t>>, std::array<float, 3>>>,
     [] {
       return to_bytes(
           std::vector<std::string>{"a", "", "bc"}, std::optional(std::vector{true, false}),
           std::vector<std::pair<std::string, std::uint64_t>>{{"x", 1}}, std::array{1.f, 2.f, 3.f});
     }},
    {"an array", load<any_array>, [] { return to_bytes(any_array::scalar(1.f)); }},
    {"a program", load<program>,
     [] {
       placeholder<float, dyn> x("x");
       auto e = square(x) + 1.f;
       return to_bytes(*deft::detail::program_of<decltype(e)>());
     }},
    {"attributes", load<std::vector<attr_value>>,
     [] {
       return to_bytes(std::vector<attr_value>{std::int64_t{1}, 0.5, std::string("name"),
                                               integers{1, 2, 3}, any_array::scalar(true)});
     }},
    {"a graph", load<graph_def>, [] { return to_bytes(some_graph().graph); }},
    {"an error",
     [](std::span<const std::byte> from, const char*) {
       message m(message_kind::error);
       m.meta.assign(from.begin(), from.end());
       const error e = decode_error(m);
       for (const char c : std::string(e.what()))
         if ((c >= 0 && c < ' ') || c == 127) fuzzing::found("an error has a control character");
       encode_error(m, 1, e);
       if (decode_error(m).message() != e.message())
         fuzzing::found("an error has another sentence once it was saved and loaded");
     },
     [] {
       message m;
       encode_error(m, 1, error(errc::aborted, "a sentence", "node", here(), "/cpu:0"));
       return m.meta;
     }},
    {"register_part", unpack<wire::register_part>,
     [] {
       return packed(wire::register_part{1, 2, some_part(), {{"/job:ps/task:0", 5}}});
     }},
    {"run_part", unpack<wire::run_part>,
     [] {
       return packed(wire::run_part{1, 2, 3, 4});
     }},
    {"reset", unpack<wire::reset>, [] { return packed(wire::reset{"models"}); }},
    {"open_session", unpack<wire::open_session>, [] { return packed(wire::open_session{}); }},
    {"make_plan", unpack<wire::make_plan>,
     [] {
       return packed(wire::make_plan{1, std::chrono::seconds(1), some_graph()});
     }},
    {"run_plan", unpack<wire::run_plan>, [] { return packed(wire::run_plan{}); }},
    {"wait_signal", unpack<wire::wait_signal>, [] { return packed(wire::wait_signal{"ready"}); }},
    {"done", unpack<wire::done>, [] { return packed(wire::done{true}); }},
    {"device_list", unpack<wire::device_list>,
     [] {
       kernel_set kernels;
       kernels.add("add", dtype_set{});
       device_info d;
       d.name = intern(parse_device("/job:ps/replica:0/task:0/cpu:0"));
       d.kernels = std::make_shared<const kernel_set>(std::move(kernels));
       return packed(wire::device_list{{d}});
     }},
    {"plan_described", unpack<wire::plan_described>,
     [] {
       wire::plan_described p;
       p.made.placed = some_graph().graph;
       p.made.passes = {{"written", 3}};
       return packed(p);
     }},
};

}  // namespace

std::vector<bytes> fuzzing::seeds() {
  std::vector<bytes> all;
  for (std::size_t i = 0; i < std::size(targets); ++i) {
    bytes b{std::byte(i)};
    append(b, targets[i].seed());
    all.push_back(std::move(b));
  }
  return all;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const target& t = targets[data[0] % std::size(targets)];
  t.run(fuzzing::as_bytes(data + 1, size - 1), t.name);
  return 0;
}
