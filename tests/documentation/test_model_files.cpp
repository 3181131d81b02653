// SPDX-License-Identifier: Apache-2.0
// What docs/models.md shows of models from elsewhere.
#include <algorithm>
#include <deft/deft.hpp>
#include <string>
#include <vector>

#include "data/gguf_bytes.hpp"
#include "data/temporary_folder.hpp"
#include "op/modeling.hpp"

using namespace deft;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "a model from elsewhere is restored, and goes back as it was") {
  const testing::temporary_folder dir;
  const std::string folder = dir.path().string();
  write_safetensors(folder + "/model.safetensors",
                    {{"classifier.weight", ndarray<float, 2, 3>{1, 2, 3, 4, 5, 6}.array()},
                     {"classifier.bias", ndarray<float, 2>{0.5f, -0.5f}.array()}},
                    {.types = {{"classifier.weight", "BF16"}}, .metadata = {{"format", "pt"}}});

  const safetensors_model original(folder);  // a file, the index of several, or their directory
  for (const std::string& name : original.names("classifier.*"))
    CHECK(original.read(name).shape() == original.entry(name).shape);

  variable<float, 3, 2> kernel("kernel", zeros());
  variable<float, 2> bias("bias", zeros());
  session s;
  saver tuning({.named = {{"classifier.weight", kernel}, {"classifier.bias", bias}},
                .transposed = {{"classifier.weight", {1, 0}}}});
  tuning.restore(s, folder);
  CHECK(s.run(kernel) == ndarray<float, 3, 2>{1, 4, 2, 5, 3, 6});
  s.run(kernel.assign_add(1.f));

  const std::string tuned = folder + "/tuned.safetensors";
  write_safetensors(tuned, tuning.arrays(s),
                    {.types = original.types(), .metadata = original.metadata()});
  const safetensors_model again(tuned);
  CHECK(again.types() == original.types());
  CHECK(again.metadata() == original.metadata());
  CHECK(again.read("classifier.weight") == ndarray<bfloat16, 2, 3>{2, 3, 4, 5, 6, 7}.array());
  CHECK(again.read("classifier.bias") == original.read("classifier.bias"));
}

TEST_CASE_FIXTURE(own_graph,
                  "arrays of a mapped file are fed, and not written by those who hold them") {
  const testing::temporary_folder dir;
  const std::string path = dir / "x.safetensors";
  any_array large(dtype::float32, dims{300'000});  // more than travels inside a plan
  std::fill_n(large.mutable_data<float>(), 300'000, 1.f);
  write_safetensors(path, {{"x", large}});
  const safetensors_model model(path);
  const ndarray<float, 300'000> pages(model.read("x"));
  CHECK(pages.data() == model.read("x").data<float>());

  placeholder<float, 300'000> x("x");
  variable<float, 300'000> from_file("from_file", ndarray<float, 300'000>(model.read("x")));
  variable<float, 300'000> fed("fed", zeros());
  session s;
  s.run(initialize_all());
  s.run(fed.assign(x), x = pages);
  for (int i = 0; i < 3; ++i) s.run(group(fed.assign_add(1.f), from_file.assign_add(2.f)));
  CHECK(s.run(max(fed)) == 4);
  CHECK(s.run(max(from_file)) == 7);
  ndarray<float, 300'000> same = s.run(identity(x), x = pages);
  same(0) = 9;
  CHECK(model.read("x") == large);
}

TEST_CASE("a GGUF file has tensors, values and a tokenizer") {
  const testing::temporary_folder dir;
  testing::gguf_bytes f = testing::gguf_bytes::file(1, 4);
  f.key("llama.block_count", 4).number(30u).key("tokenizer.ggml.model", 8).text("gpt2");
  f.strings("tokenizer.ggml.tokens", {"a", "b", "ab"}).strings("tokenizer.ggml.merges", {"a b"});
  f.tensor("token_embd.weight", {32, 3}, 8, 0).align().raw(std::string(3 * 34, '\0'));
  const std::string path = dir / "model.gguf";
  testing::write_bytes(path, f.bytes());

  const gguf_file model = read_gguf(path);
  const int layers = model.get<int>("llama.block_count");
  const any_array table = model.read("token_embd.weight");              // floats
  const quantized_array blocks = model.quantized("token_embd.weight");  // what the file has
  CHECK(layers == 30);
  CHECK(table.shape() == dims{3, 32});
  CHECK(blocks.bytes() == 102);

  const byte_pair_tokenizer tokens(model);
  const std::vector<std::int32_t> ids = tokens.encode("abba");
  const std::string text = tokens.decode(ids);
  CHECK(ids == std::vector<std::int32_t>{2, 1, 0});
  CHECK(text == "abba");
}
