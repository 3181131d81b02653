// SPDX-License-Identifier: Apache-2.0
#include <deft/train/summaries.hpp>

#include <deft/data/record.hpp>
#include <deft/observe/summary_writer.hpp>
#include <deft/train/optimizers.hpp>
#include <filesystem>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <set>
#include <vector>

#include "../data/temporary_folder.hpp"
#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;
using testing::own_graph;

namespace {

/// The events of all files in a folder but for their versions, the file's that was written first
/// first: "5 start, 5 loss, graph".
std::string events_in(const std::filesystem::path& folder) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.insert(entry.path().string());
  std::vector<std::string> events;
  for (const std::string& file : files) {
    record_reader reader(file);
    reader.next();
    while (const auto record = reader.next()) {
      std::int64_t step = 0;
      std::string what;
      protozero::pbf_reader event(record->data(), record->size());
      while (event.next()) switch (event.tag()) {
          case 2:
            step = event.get_int64();
            break;
          case 4:
            what = "graph";
            event.skip();
            break;
          case 5: {
            protozero::pbf_reader summary = event.get_message();
            REQUIRE(summary.next(1));
            protozero::pbf_reader value = summary.get_message();
            REQUIRE(value.next(1));
            what = value.get_string();
            break;
          }
          case 7:
            what = "start";
            event.skip();
            break;
          default:
            event.skip();
        }
      events.push_back(what == "graph" ? what : str(step, " ", what));
    }
  }
  return join(events, ", ");
}

/// The device of each node in the graph of an event file, by name.
std::map<std::string, std::string> devices_in(const std::string& file) {
  std::map<std::string, std::string> devices;
  record_reader reader(file);
  while (const auto record = reader.next()) {
    protozero::pbf_reader event(record->data(), record->size());
    while (event.next()) {
      if (event.tag() != 4) {
        event.skip();
        continue;
      }
      protozero::pbf_reader graph(event.get_view());
      while (graph.next(1)) {
        protozero::pbf_reader node = graph.get_message();
        std::string name, device;
        while (node.next())
          if (node.tag() == 1)
            name = node.get_string();
          else if (node.tag() == 4)
            device = node.get_string();
          else
            node.skip();
        devices[name] = device;
      }
    }
  }
  return devices;
}

}  // namespace

TEST_CASE("nodes of a graph carry the devices on which they ran") {
  const testing::temporary_folder folder;
  local_cluster c{{"ps", 1}, {"worker", 1}};
  graph g;
  auto in_graph = as_default(g);
  auto there = on(replica_device(c.spec(), "/job:worker/task:0"));
  placeholder<float, 8, 4> x("x");
  variable<float, 4, 2> w("w", ones());
  const operation train = sgd(0.1).minimize(mean(square(tanh(matmul(x, w)))));
  session s(c.target("worker", 0));
  s.run(initialize_all());
  const auto in = feed(any_tensor(x), ndarray<float, 8, 4>().array());
  summary_writer writer(folder / "a");
  writer.graph(s.describe(train, in).placed);
  writer.flush();
  const auto devices = devices_in(writer.file());
  step_trace ran;
  s.run(run_options{.trace = &ran}, train, in);
  int compared = 0;
  for (const trace_event& e : ran.events)
    if (const auto at = devices.find(e.node); at != devices.end()) {
      CAPTURE(e.node);
      CHECK(at->second == e.device);
      ++compared;
    }
  CHECK(compared >= 3);
  const std::string device = testing::usual_device();
  CHECK(devices.at("matmul") == "/job:worker/replica:0/task:0/" + device);
  CHECK(devices.at("w") == "/job:ps/replica:0/task:0/" + device);
}

TEST_CASE("summaries are written at the first step and then every so many") {
  testing::temporary_folder dir;
  CHECK(testing::threaded_job(0, 1).run([&](task& self) {
    variable<float> w("w", 1.f);
    const auto loss = square(w);
    const operation train = sgd(0.1).minimize(loss, global_step());
    const auto image = broadcast_to(w, shape<2, 3>);
    monitored_session s(
        self,
        {.hooks = {save_summaries(dir / "logs",
                                  {scalar_summary("loss", loss), text_summary("options", "*none*"),
                                   histogram_summary("w", w), image_summary("image", image)},
                                  10)}});
    for (int i = 0; i < 25; ++i) s.run(train);
  }) == std::vector<int>{0});
  CHECK(events_in(dir.path() / "logs") ==
        "1 start, graph, 1 options, 1 loss, 1 w, 1 image, 11 loss, 11 w, 11 image, 21 loss, 21 w, "
        "21 image");
}

TEST_CASE("TensorBoard is told where training goes on") {
  testing::temporary_folder dir;
  testing::threaded_job job(0, 1);
  job.run([&](task& self) {
    variable<float> w("w", 1.f);
    const operation train = sgd(0.1).minimize(square(w), global_step());
    const hook_ref hook = save_summaries(
        dir / "logs", {scalar_summary("w", w), text_summary("options", "*none*")}, 4);
    monitored_session s(self, {.hooks = {hook}});
    for (int i = 0; i < 6; ++i) s.run(train);
    s.session().run(global_step().assign(3));
    run_context again(self, s.session());
    hook->after_create(again);  // as a recovery does
    for (int i = 0; i < 2; ++i) s.run(train);
  });
  CHECK(events_in(dir.path() / "logs") ==
        "1 start, graph, 1 options, 1 w, 5 w, 4 start, graph, 4 options, 4 w");
}

TEST_CASE_FIXTURE(own_graph, "a summary of what cannot be shown is refused") {
  const std::string no_tag =
      "invalid_argument: [summary] \"f\\xfcr\" is not a valid tag: it is not UTF-8";
  CHECK(testing::error_of([] { scalar_summary("f\xfcr", constant(1.f)); }) == no_tag);
  CHECK(testing::error_of([] { text_summary("f\xfcr", "x"); }) == no_tag);
  variable<float, 3> w("w", zeros());
  placeholder<bool> b("b");
  CHECK(
      error_of([&] { scalar_summary("loss", w); })
          .starts_with("invalid_argument: [summary] \"loss\" expects a scalar of numbers, and got "
                       "float(3), node \"w\" at"));
  CHECK(error_of([&] { histogram_summary("b", b); }).find("expects numbers") != std::string::npos);
  CHECK(error_of([&] { image_summary("w", w); }).find("(height, width)") != std::string::npos);
  for (const tensor_type& t : {tensor_type{{4, 4, 5}, dtype::uint8}, {{4, 4}, dtype::int32}})
    CHECK(error_of([&] {
            image_summary("x", testing::any(t.type, t.shape));
          }).starts_with("invalid_argument: [summary] \"x\" expects (height, width) or"));
  const auto counted = global_step();
  CHECK(error_of([&] {
          save_summaries("a", {text_summary("t", ""), text_summary("t", "")})->begin();
        }) == "invalid_argument: [save_summaries] two summaries have the tag \"t\"");
  CHECK(error_of([&] {
          save_summaries("a", {}, 0);
        }).starts_with("invalid_argument: [save_summaries] expects a number of steps above 0"));
}
