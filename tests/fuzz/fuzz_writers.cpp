// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzz_writers.cpp: what is written, whatever its names and values, is read back the
// same; names that the format's readers do not take are refused before. An input is a byte that
// chooses the format, names and values.
#include <boost/json.hpp>
#include <cmath>
#include <cstring>
#include <deft/core/ndarray.hpp>
#include <deft/core/safetensors.hpp>
#include <deft/data/example.hpp>
#include <deft/data/npy.hpp>
#include <deft/data/record.hpp>
#include <deft/graph/dot.hpp>
#include <deft/observe/chrome_trace.hpp>
#include <deft/observe/summary_writer.hpp>
#include <deft/op/catalog.hpp>
#include <protozero/pbf_reader.hpp>

#include "fuzzing.hpp"

using namespace deft;
using namespace deft::ext;
using fuzzing::bytes;
using fuzzing::found;
using fuzzing::taker;

namespace {

template <class T>
std::vector<T> list_of(taker& t) {
  std::vector<T> all;
  for (auto n = t.number<std::uint8_t>() % 16; n > 0; --n) all.push_back(t.number<T>());
  return all;
}
any_array array_of(taker& t) {
  const dtype types[] = {dtype::float32, dtype::float64, dtype::int32,
                         dtype::int64,   dtype::uint8,   dtype::boolean};
  const dtype type = types[t.number<std::uint8_t>() % std::size(types)];
  dims shape;
  for (auto rank = t.number<std::uint8_t>() % 5; rank > 0; --rank)
    shape.push_back(t.number<std::uint8_t>() % 5);
  any_array a(type, shape);
  auto* to = static_cast<std::uint8_t*>(a.mutable_raw());
  for (std::size_t i = 0; i < a.bytes(); ++i) {
    to[i] = t.number<std::uint8_t>();
    if (type == dtype::boolean) to[i] &= 1;
  }
  return a;
}
void compare(const any_array& a, const any_array& b) {
  if (a.type() != b.type() || a.shape() != b.shape() ||
      (a.bytes() > 0 && std::memcmp(a.raw(), b.raw(), a.bytes()) != 0))
    found("an array is another once it was written and read");
}
/// Whether it was accepted, as it must be if and only if `name` is one of the format.
template <class F>
bool accepts(const std::string& name, bool valid, F&& write) {
  const bool is = fuzzing::accepted_file(write);
  if (is != valid) found(is ? "accepted " : "refused ", "the name ", printable(name));
  return is;
}

void safetensors(taker t) {
  const std::string path = fuzzing::directory() + "/w.safetensors", name = t.text();
  const any_array a = array_of(t);
  if (accepts(name, is_utf8(name) && name != "__metadata__", [&] {
        write_safetensors(path, {{name, a}});
      }))
    compare(a, read_safetensors(path).at(name));
}
void npy(taker t) {
  const fuzzing::memory_file file({});
  const any_array a = array_of(t);
  write_npy(file.path(), a);
  compare(a, read_npy(file.path()));
}
void tf_example(taker t) {
  const std::string name = t.text();
  example e;
  const auto integers = list_of<std::int64_t>(t);
  if (!accepts(name, is_utf8(name), [&] { e.set(name, integers); })) return;
  if (example_view(e.encode()).integers(name) != integers) found("integers differ");
  std::vector<std::string> texts;
  while (!t.empty()) texts.push_back(t.text());
  const std::string encoded = e.set(name, texts).encode();
  const auto read = example_view(encoded).bytes(name);
  if (!std::ranges::equal(read, texts)) found("bytes differ");
}
void summaries(taker t) {
  summary_writer writer(fuzzing::directory());
  const std::string tag = t.text();
  const auto step = t.number<std::int64_t>();
  const float value = t.number<float>();
  const any_array values = array_of(t);
  const bool is_written = accepts(tag, is_utf8(tag), [&] { writer.scalar(tag, value, step); });
  if (values.type() != dtype::boolean)
    accepts(tag, is_utf8(tag), [&] { writer.histogram(tag, values, step); });
  accepts(tag, is_utf8(tag), [&] { writer.text(tag, t.text(), step); });
  writer.flush();
  record_reader reader(writer.file());
  std::size_t scalars = 0;
  for (int i = 0; const auto record = reader.next(); ++i) {
    protozero::pbf_reader event(record->data(), record->size());
    while (event.next()) {
      if (event.tag() != 5) {
        event.skip();
        continue;
      }
      protozero::pbf_reader summary = event.get_message();
      while (summary.next(1)) {
        protozero::pbf_reader one = summary.get_message();
        while (one.next())
          if (one.tag() == 1) {
            if (one.get_string() != tag) found("another tag");
          } else if (one.tag() == 2) {
            const float read = one.get_float();
            // As doubles: which NaN it is may change.
            const bool same = std::isnan(value) ? std::isnan(read) : read == value;
            if (!same) found("another value");
            ++scalars;
          } else {
            one.skip();
          }
      }
    }
  }
  std::filesystem::remove(writer.file());
  if (scalars != (is_written ? 1u : 0u)) found("a scalar is lost");
}
void graphs(taker t) {
  graph_def g;
  g.nodes.resize(1);
  g.nodes[0].name = t.text();
  g.nodes[0].op = &record_of<op::constant>;
  if (!is_utf8(to_dot(g))) found("DOT that is not UTF-8");
  const step_trace trace{{{g.nodes[0].name, "add", t.text(), t.text(), 0, 1, 2}}};
  boost::json::parse(chrome_trace(trace));
}

constexpr void (*formats[])(taker) = {safetensors, npy, tf_example, summaries, graphs};

}  // namespace

std::vector<bytes> fuzzing::seeds() {
  std::vector<bytes> all;
  for (std::size_t i = 0; i < std::size(formats); ++i) {
    bytes b{std::byte(i)};
    append(b, bytes_of("\5w/\u00fc:\2\2\3\1\2\3\4\5\6\7\4text\1\2\3"));
    all.push_back(std::move(b));
  }
  return all;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  formats[data[0] % std::size(formats)](taker(fuzzing::as_bytes(data + 1, size - 1)));
  return 0;
}
