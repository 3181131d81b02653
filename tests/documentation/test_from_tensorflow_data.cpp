// SPDX-License-Identifier: Apache-2.0
// What docs/from_tensorflow.md shows of datasets.
#include <deft/deft.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/temporary_folder.hpp"
#include "testing.hpp"

using namespace deft;

TEST_CASE("datasets") {
  testing::temporary_folder temporary;
  const std::string records_file = temporary / "examples", table = temporary / "table.csv",
                    text = temporary / "text";
  {
    record_writer writer(records_file);
    for (int i = 0; i < 3; ++i) writer.write(example().set("label", i).encode());
  }
  testing::write_bytes(table, "x,y\n0.5,1\n1.5,2\n");
  testing::write_bytes(text, "a\nb\n");
  const std::vector<std::string> files{text, text};

  const ndarray<float, dyn> x{1, 2, 3}, y{4, 5, 6};
  const auto both = from_slices(x, y);
  CHECK(both.cardinality() == 3);
  int lines = 0;
  for (auto& [line] : text_lines(files)) lines += line.size() == 1;
  CHECK(lines == 4);
  const auto lines_of = [](const std::string& file) { return text_lines(file); };
  std::string taken;
  for (auto& [line] : from_slices(files).interleave(lines_of, 2)) taken += line;
  CHECK(taken == "aabb");
  int whole = 0;
  for (auto& [record] : records(records_file)) whole += !record.empty();
  CHECK(whole == 3);
  const auto label = [](const example_view& e) { return e.one_integer("label"); };
  std::int64_t labels = 0;
  for (auto& [l] : examples(records_file, label)) labels += l;
  CHECK(labels == 3);
  float in_table = 0;
  for (auto& [a, b] : csv<float, std::int32_t>(table, {.header = true}))
    in_table += a * static_cast<float>(b);
  CHECK(in_table == 3.5f);

  const auto numbers = [n = 0]() mutable { return n < 20 ? std::optional(n++) : std::nullopt; };
  const auto twice = [](int n) { return 2 * n; };
  const auto small = [](int n) { return n < 30; };
  int count = 0;  // of 4, 8, …, 28, twice, in groups of four
  const auto pipeline = from_generator(numbers)
                            .map(twice, {.threads = 2})
                            .filter(small)
                            .shard(2, 0)
                            .skip(1)
                            .take(9)
                            .repeat(2)
                            .shuffle(1000, 7)
                            .batch(4, true)
                            .prefetch(2);
  for (auto& [number] : pipeline)
    for (int n : number) count += n % 4 == 0 && n >= 4 && n <= 28;
  CHECK(count == 12);
}
