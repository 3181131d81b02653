// SPDX-License-Identifier: Apache-2.0
#include <deft/train/summaries.hpp>

#include <deft/data/record.hpp>
#include <deft/train/optimizers.hpp>
#include <filesystem>

#include "../data/temporary_folder.hpp"
#include "training.hpp"

using namespace deft;
using testing::error_of;
using testing::own_graph;

namespace {

/// Events of the only file in a folder; the first is its version.
std::size_t events_in(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    record_reader reader(entry.path().string());
    while (reader.next()) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("summaries are written at the first step and then every so many") {
  testing::temporary_folder dir;
  CHECK(testing::threaded_job(0, 1).run([&](task& self) {
    variable<float> w("w", 1.f);
    const auto loss = square(w);
    const operation train = sgd(0.1).minimize(loss, global_step());
    monitored_session s(
        self, {.hooks = {save_summaries(
                   dir / "logs", {scalar_summary("loss", loss), histogram_summary("w", w)}, 10)}});
    for (int i = 0; i < 25; ++i) s.run(train);
  }) == std::vector<int>{0});
  CHECK(events_in(dir.path() / "logs") == 1 + 1 + 2 * 3);  // the graph; steps 0, 10 and 20
}

TEST_CASE_FIXTURE(own_graph, "a summary of what cannot be shown is refused") {
  variable<float, 3> w("w", zeros());
  placeholder<bool> b("b");
  CHECK(
      error_of([&] { scalar_summary("loss", w); })
          .starts_with("invalid_argument: [summary] \"loss\" expects a scalar of numbers, and got "
                       "float(3), node \"w\" at"));
  CHECK(error_of([&] { histogram_summary("b", b); }).find("expects numbers") != std::string::npos);
  CHECK(error_of([&] { image_summary("w", w); }).find("(height, width)") != std::string::npos);
  CHECK(error_of([&] {
          save_summaries("a", {}, 0);
        }).starts_with("invalid_argument: [save_summaries] expects a number of steps above 0"));
}
