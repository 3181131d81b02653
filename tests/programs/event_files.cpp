// SPDX-License-Identifier: Apache-2.0
// tests/programs/event_files.cpp FOLDER: an event file and a TFRecord file, for the packages that
// read them to compare (tests/observe/read_back.py).
#include <deft/deft.hpp>

using namespace deft;
using namespace deft::ext;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  summary_writer events(folder);
  for (int step : {7, 40}) events.scalar("loss", -1, step);  // of a run that is lost
  events.start_at(0);
  for (int step = 0; step < 5; ++step) events.scalar("loss", 1. / (step + 1), 10 * step);
  events.histogram("weights", ndarray<float, 6>{-2, -1, 0, 1, 2, 3}, 10);
  ndarray<float, 2, 3> grey{0, 0.25f, 0.5f, 0.75f, 1, 0};
  events.image("grey", grey, 3);
  events.text("notes", "**bold**", 4);
  // Names that are not UTF-8 are refused or escaped, so that what follows is read.
  try {
    events.scalar("f\xfcr", 1, 1);
    return 1;
  } catch (const error&) {
  }
  events.text("bytes", "f\xfcr", 5);
  events.scalar("gr\u00f6\u00dfe", 2, 6);

  placeholder<float, 3> x("x");
  auto there = on(device("/cpu:1"));
  auto named = name_scope("layer");
  tensor<float> y = sum(x);
  session s({.cpu_devices = 2});
  events.graph(s.describe(y, x = {1.f, 2.f, 3.f}).placed);

  record_writer records(folder + "/examples");
  for (int i = 0; i < 3; ++i)
    records.write(example()
                      .set("number", i)
                      .set("text", str("number ", i))
                      .set("values", std::vector<float>{0.5f * static_cast<float>(i), -1})
                      .set("no number", std::vector<std::int64_t>())
                      .set("no text", std::vector<std::string>())
                      .set("no value", std::vector<float>())
                      .encode());
}
