// SPDX-License-Identifier: Apache-2.0
#include <deft/observe/summary_writer.hpp>

#include <zlib.h>

#include <cmath>
#include <deft/core/ndarray.hpp>
#include <deft/data/record.hpp>
#include <deft/op/catalog.hpp>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <vector>

#include "../data/temporary_folder.hpp"
#include "../testing.hpp"

using namespace deft;
using namespace deft::ext;
using protozero::pbf_reader;
using testing::error_of;

namespace {

/// What tests look at in an event.
struct event {
  double time = 0;
  std::int64_t step = 0;
  std::string version, graph, tag, image, histogram, plugin, tensor;
  float scalar = 0;
  bool start = false;
};

event event_of(std::string_view bytes) {
  event e;
  pbf_reader m(bytes.data(), bytes.size());
  while (m.next()) switch (m.tag()) {
      case 1:
        e.time = m.get_double();
        break;
      case 2:
        e.step = m.get_int64();
        break;
      case 3:
        e.version = m.get_string();
        break;
      case 4:
        e.graph = m.get_bytes();
        break;
      case 5: {
        pbf_reader summary = m.get_message();
        REQUIRE(summary.next(1));
        pbf_reader value = summary.get_message();
        while (value.next()) switch (value.tag()) {
            case 1:
              e.tag = value.get_string();
              break;
            case 2:
              e.scalar = value.get_float();
              break;
            case 4:
              e.image = value.get_bytes();
              break;
            case 5:
              e.histogram = value.get_bytes();
              break;
            case 8:
              e.tensor = value.get_bytes();
              break;
            case 9: {
              pbf_reader metadata = value.get_message();
              REQUIRE(metadata.next(1));
              pbf_reader plugin = metadata.get_message();
              REQUIRE(plugin.next(1));
              e.plugin = plugin.get_string();
              break;
            }
            default:
              FAIL("an unknown field of a value: ", value.tag());
          }
        break;
      }
      case 7: {
        pbf_reader session = m.get_message();
        REQUIRE(session.next(1));
        e.start = session.get_enum() == 1;
        break;
      }
      default:
        FAIL("an unknown field of an event: ", m.tag());
    }
  return e;
}

std::vector<event> events_of(const std::string& file) {
  record_reader reader(file);
  std::vector<event> all;
  while (const auto record = reader.next()) all.push_back(event_of(*record));
  return all;
}

}  // namespace

TEST_CASE("an event file begins with its version, and holds scalars and text") {
  testing::temporary_folder dir;
  summary_writer writer(dir / "a/b");
  CHECK(writer.file().find("/a/b/events.out.tfevents.") != std::string::npos);
  writer.scalar("loss", 0.25, 7);
  writer.text("notes", "*well*", 8);
  writer.start_at(5);
  writer.flush();
  const auto events = events_of(writer.file());
  REQUIRE(events.size() == 4);
  CHECK(events[0].version == "brain.Event:2");
  CHECK(events[0].time > 1.7e9);
  CHECK(events[1].tag == "loss");
  CHECK(events[1].scalar == 0.25f);
  CHECK(events[1].step == 7);
  CHECK(events[2].plugin == "text");
  CHECK(events[2].tensor.ends_with("*well*"));
  CHECK(events[3].start);
  CHECK(events[3].step == 5);
  CHECK(!events[2].start);
  CHECK(!(summary_writer(dir / "a/b").file() == writer.file()));
}

TEST_CASE("a histogram counts every finite element once") {
  testing::temporary_folder dir;
  summary_writer writer(dir / "a");
  writer.histogram("w", ndarray<float, 7>{-1, 0, 0, 0.5f, 2, INFINITY, NAN}, 1);
  writer.histogram("none", ndarray<int, 0>(), 1);
  writer.histogram("same", ndarray<std::uint8_t, 3>{3, 3, 3}, 1);
  writer.flush();
  const auto events = events_of(writer.file());
  REQUIRE(events.size() == 4);
  auto parsed = [](const std::string& bytes) {
    std::map<int, double> numbers;
    std::vector<double> ends, counts;
    pbf_reader h(bytes);
    while (h.next())
      if (const int tag = static_cast<int>(h.tag()); tag < 6)
        numbers[tag] = h.get_double();
      else
        for (const double v : h.get_packed_double()) (tag == 6 ? ends : counts).push_back(v);
    return std::tuple(numbers, ends, counts);
  };
  const auto [numbers, ends, counts] = parsed(events[1].histogram);
  CHECK(numbers.at(1) == -1);
  CHECK(numbers.at(2) == 2);
  CHECK(numbers.at(3) == 5);
  CHECK(numbers.at(4) == 1.5);
  CHECK(numbers.at(5) == 5.25);
  REQUIRE(ends.size() == counts.size());
  CHECK(std::ranges::is_sorted(ends));
  // Each in the bucket that ends above it, and begins at it or below.
  for (const auto& [v, n] : std::map<double, double>{{-1, 1}, {0, 2}, {0.5, 1}, {2, 1}}) {
    const auto at = static_cast<std::size_t>(std::ranges::upper_bound(ends, v) - ends.begin());
    CHECK(counts[at] == n);
  }
  CHECK(std::get<0>(parsed(events[2].histogram)).at(3) == 0);
  CHECK(std::get<0>(parsed(events[3].histogram)).at(4) == 9);
}

TEST_CASE("an image is a PNG of its pixels") {
  testing::temporary_folder dir;
  summary_writer writer(dir / "a");
  writer.image("grey", ndarray<float, 2, 3>{0, 0.5f, 1, -1, 2, 0.25f}, 1);
  writer.image("colour", ndarray<std::uint8_t, 1, 2, 3>{1, 2, 3, 4, 5, 6}, 1);
  writer.flush();
  const auto events = events_of(writer.file());
  REQUIRE(events.size() == 3);
  auto pixels = [](const event& e, std::size_t raw_bytes) {
    pbf_reader m(e.image);
    std::string png;
    while (m.next())
      if (m.tag() == 4)
        png = m.get_bytes();
      else
        m.skip();
    CHECK(png.starts_with("\x89PNG\r\n\x1a\n"));
    const auto at = png.find("IDAT");
    std::string rows(raw_bytes, '\0');
    uLongf size = rows.size();
    CHECK(uncompress(reinterpret_cast<Bytef*>(rows.data()), &size,
                     reinterpret_cast<const Bytef*>(png.data() + at + 4),
                     png.size() - at - 4) == Z_OK);
    CHECK(size == raw_bytes);
    return rows;
  };
  CHECK(pixels(events[1], 8) == std::string("\0\0\x80\xff\0\0\xff\x40", 8));
  CHECK(pixels(events[2], 7) == std::string("\0\1\2\3\4\5\6", 7));
  CHECK(error_of([&] { writer.image("x", ndarray<float, 2, 2, 2>(), 1); })
            .starts_with("invalid_argument: [image] expects (height, width) or (height, width, "
                         "channels) with 1, 3 or 4 channels, of uint8, float or double, and got "
                         "float(2,2,2)"));
  CHECK(error_of([&] { writer.image("x", ndarray<int, 2, 2>(), 1); }).starts_with("invalid"));
}

TEST_CASE("a graph has names, operations, inputs and devices") {
  testing::temporary_folder dir;
  graph_def g;
  g.nodes.resize(2);
  g.nodes[0].name = "a";
  g.nodes[0].op = &record_of<op::constant>;
  g.nodes[1].name = "b";
  g.nodes[1].op = &record_of<op::neg>;
  g.nodes[1].inputs = {{0, 0}};
  g.nodes[1].controls = {0};
  g.nodes[1].device = intern(parse_device("/job:ps/task:1/gpu:0"));
  summary_writer writer(dir / "a");
  writer.graph(g);
  writer.flush();
  const auto events = events_of(writer.file());
  REQUIRE(events.size() == 2);
  pbf_reader all(events[1].graph);
  std::vector<std::vector<std::string>> nodes;
  while (all.next(1)) {
    pbf_reader node = all.get_message();
    nodes.emplace_back();
    while (node.next()) nodes.back().push_back(node.get_string());
  }
  CHECK(nodes == std::vector<std::vector<std::string>>{
                     {"a", "constant"}, {"b", "neg", "a", "^a", "/job:ps/task:1/gpu:0"}});
}

TEST_CASE("what TensorBoard could not read is refused at the call, or escaped") {
  testing::temporary_folder dir;
  summary_writer writer(dir / "a");
  writer.scalar("gr\u00f6\u00dfe", 1, 1);
  const std::string bad = "f\xfcr";
  const std::string refused =
      "invalid_argument: [summary] \"f\\xfcr\" is not a valid tag: it is not UTF-8";
  CHECK(error_of([&] { writer.scalar(bad, 2, 1); }) == refused);
  CHECK(error_of([&] { writer.text(bad, "x", 1); }) == refused);
  CHECK(error_of([&] { writer.histogram(bad, ndarray<float, 1>{1}, 1); }) == refused);
  CHECK(error_of([&] { writer.image(bad, ndarray<float, 1, 1>{1}, 1); }) == refused);
  writer.text("notes", "f\xfcr", 2);
  graph_def g;
  g.nodes.resize(2);
  g.nodes[0].name = bad;
  g.nodes[0].op = &record_of<op::constant>;
  g.nodes[1].name = "b";
  g.nodes[1].op = &record_of<op::neg>;
  g.nodes[1].inputs = {{0, 0}};
  g.nodes[1].controls = {0};
  writer.graph(g);
  writer.flush();
  const auto events = events_of(writer.file());
  REQUIRE(events.size() == 4);
  CHECK(events[1].tag == "gr\u00f6\u00dfe");
  CHECK(events[2].tensor.ends_with("f\\xfcr"));
  for (const std::string& name : {std::string("f\\xfcr"), std::string("^f\\xfcr")})
    CHECK(events[3].graph.find(name) != std::string::npos);
  CHECK(events[3].graph.find(bad) == std::string::npos);
}

TEST_CASE("a folder that cannot be made is named") {
  CHECK(error_of([] {
          summary_writer("/dev/null/a");
        }).starts_with("unavailable: [summary_writer] cannot create /dev/null/a: "));
}
