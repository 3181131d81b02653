// SPDX-License-Identifier: Apache-2.0
// What docs/datasets.md shows.
#include <deft/deft.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "data/temporary_folder.hpp"
#include "op/modeling.hpp"

using namespace deft;
using testing::own_graph;

namespace {

template <class D>
using element_of = typename D::value_type;

}  // namespace

TEST_CASE("elements of each source, and what batch makes of them") {
  testing::temporary_folder temporary;
  const std::string table = temporary / "table.csv", text = temporary / "words.txt",
                    digits = temporary.path().string();
  testing::write_bytes(table, "length,width,name\n0.5,1,a\n1.5,2,b\n2.5,,c\n");
  testing::write_bytes(text, "one\ntwo\n");
  const ndarray<float, dyn, 2> x{{1, 2}, {3, 4}, {5, 6}};
  const ndarray<std::int32_t, dyn> y{7, 8, 9};

  auto rows = from_slices(x, y);
  auto numbers = from_slices(std::vector<int>{3, 1, 2});
  auto lines = text_lines(text);
  auto columns = csv<float, std::optional<float>, std::string>(table, {.header = true});
  auto images = mnist();
  static_assert(std::is_same_v<element_of<decltype(rows)>,
                               std::tuple<ndarray<float, 2>, ndarray<std::int32_t>>>);
  static_assert(std::is_same_v<element_of<decltype(numbers)>, std::tuple<int>>);
  static_assert(std::is_same_v<element_of<decltype(lines)>, std::tuple<std::string>>);
  static_assert(std::is_same_v<element_of<decltype(columns)>,
                               std::tuple<float, std::optional<float>, std::string>>);
  static_assert(std::is_same_v<element_of<decltype(images)>,
                               std::tuple<ndarray<float, 784>, ndarray<std::int32_t>>>);
  static_assert(std::is_same_v<element_of<decltype(rows.batch(2))>,
                               std::tuple<ndarray<float, dyn, 2>, ndarray<std::int32_t, dyn>>>);
  static_assert(
      std::is_same_v<element_of<decltype(numbers.batch(2))>, std::tuple<ndarray<int, dyn>>>);
  static_assert(
      std::is_same_v<element_of<decltype(lines.batch(2))>, std::tuple<std::vector<std::string>>>);

  float sum = 0;
  for (auto& [row, label] : rows) sum += row(0) * static_cast<float>(label());
  CHECK(sum == 1 * 7 + 3 * 8 + 5 * 9);
  std::string words;
  for (auto& [line] : lines) words += line;
  CHECK(words == "onetwo");
  int missing = 0;
  for (auto& [length, width, name] : columns) missing += !width;
  CHECK(missing == 1);
  int ordered = 0;
  for (auto& [n] : numbers) ordered = 10 * ordered + n;
  CHECK(ordered == 312);
}

TEST_CASE("a function of the components makes new elements") {
  testing::temporary_folder temporary;
  const std::string table = temporary / "table.csv";
  testing::write_bytes(table, "0.5,1,0\n1.5,2,1\n2.5,3,1\n");

  auto flowers = csv<float, float, std::int32_t>(table)
                     .map([](float length, float width, std::int32_t species) {
                       return std::tuple(ndarray<float, 2>{length, width}, species);
                     })
                     .shuffle(1000, 1)
                     .batch(2);
  std::int64_t seen = 0;
  for (auto& [measures, species] : flowers) {  // float(?,2) and int32(?)
    seen += measures.extent(0);
    CHECK(species.extent(0) == measures.extent(0));
  }
  CHECK(seen == 3);
}

TEST_CASE_FIXTURE(own_graph, "batches are fed") {
  placeholder<float, dyn, 784> x("x");
  placeholder<std::int32_t, dyn> label("label");
  auto mean_of_all = mean(x);
  auto largest = max(label);
  session s;
  int steps = 0;
  for (auto& [images, labels] : mnist_test().batch(100).take(3)) {
    auto [grey, digit] = s.run(mean_of_all, largest, x = images, label = labels);
    steps += grey > 0 && digit <= 9;
  }
  CHECK(steps == 3);
}

TEST_CASE("arrays are written to files, and read") {
  testing::temporary_folder temporary;
  const std::string folder = temporary.path().string();
  const ndarray<float, dyn, 2> rows{{1, 2}, {3, 4}, {5, 6}};
  write_npy(folder + "/x.npy", rows);  // for numpy.load
  ndarray<float, dyn, 2> x(read_npy(folder + "/x.npy"));
  write_safetensors(folder + "/x.safetensors", {{"x", x.array()}});
  any_array again = read_safetensors(folder + "/x.safetensors").at("x");
  CHECK(again == rows.array());
}

TEST_CASE("each worker reads its own part, and files in turn") {
  testing::temporary_folder temporary;
  std::vector<std::string> files;
  for (const char* name : {"a", "b", "c", "d"}) {
    files.push_back(temporary / name);
    testing::write_bytes(files.back(), std::string(name) + "1\n" + name + "2\n");
  }
  const int workers = 2, worker = 1;
  auto mine = from_slices(files)
                  .shard(workers, worker)
                  .interleave([](const std::string& file) { return text_lines(file); }, 2);
  std::string read;
  for (auto& [line] : mine) read += line + " ";
  CHECK(read == "b1 d1 b2 d2 ");
}

TEST_CASE("an endless source, ahead of the one that uses it") {
  auto squares = from_generator([n = 0]() mutable { return std::optional(n++); })
                     .map([](int n) { return n * n; }, {.threads = 2})
                     .prefetch(4)
                     .take(5);
  int sum = 0;
  for (auto& [n] : squares) sum += n;
  CHECK(sum == 0 + 1 + 4 + 9 + 16);
}
