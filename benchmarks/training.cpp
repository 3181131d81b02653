// SPDX-License-Identifier: Apache-2.0
// benchmarks/training.cpp: steps of training, and what surrounds them: records, checkpoints and
// embeddings, next to peers and to the same work by hand. Without peers it has the latter rows
// only.
//
// bench_training [--peers ENVIRONMENT] [--folder FOLDER]; checkpoints of 400 MB go to FOLDER.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <deft/core/crc32c.hpp>
#include <deft/deft.hpp>
#include <filesystem>
#include <memory>
#include <protozero/pbf_reader.hpp>
#include <random>
#include <span>

#include "bench.hpp"
#include "peers.hpp"

namespace {

using namespace deft;
using namespace deft::ext;

/// A folder of its own, deleted with this object.
class scratch_folder {
 public:
  explicit scratch_folder(std::string in) {
    if (in.empty()) in = std::filesystem::temp_directory_path().string();
    path_ = in + "/deft_bench_XXXXXX";
    if (!mkdtemp(path_.data())) {
      std::perror(path_.c_str());
      std::exit(1);
    }
  }
  ~scratch_folder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  scratch_folder(const scratch_folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void expect(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(1);
}

bench::peer peer_of(const std::string& python, const char* name, int threads) {
  return {name, {python, bench::peers_folder() + "/training.py", name, std::to_string(threads)}};
}

std::string of_threads(int threads) { return str(threads, threads == 1 ? " thread" : " threads"); }

/// The net of examples/18_mnist_conv.cpp.
void lenet(const std::string& python, int threads) {
  constexpr int batch = 64;
  graph own;
  auto in_own = as_default(own);
  placeholder<float, batch, 784> x("x");
  placeholder<std::int32_t, batch> label("label");
  variable<float, 5, 5, 1, 32> w1("w1", truncated_normal(0.1));
  variable<float, 32> b1("b1", zeros());
  variable<float, 5, 5, 32, 64> w2("w2", truncated_normal(0.05));
  variable<float, 64> b2("b2", zeros());
  variable<float, 7 * 7 * 64, 512> w3("w3", truncated_normal(0.025));
  variable<float, 512> b3("b3", zeros());
  variable<float, 512, 10> w4("w4", truncated_normal(0.05));
  variable<float, 10> b4("b4", zeros());
  auto image = reshape(x, shape<batch, 28, 28, 1>);
  auto first = max_pool(relu(conv2d(image, w1, padding::same) + b1), window<2>);
  auto second = max_pool(relu(conv2d(first, w2, padding::same) + b2), window<2>);
  auto hidden = relu(matmul(reshape(second, shape<batch, 7 * 7 * 64>), w3) + b3);
  auto loss = mean(softmax_cross_entropy(matmul(hidden, w4) + b4, label));
  auto train = adam(0.001).minimize(loss);

  session s({.intra_op_threads = threads});
  s.run(initialize_all());
  auto step = s.prepare(loss, train, feeds(x, label));
  std::mt19937 random(1);
  ndarray<float, batch, 784> images;
  ndarray<std::int32_t, batch> labels;
  for (auto& e : images) e = std::uniform_real_distribution<float>()(random);
  for (auto& e : labels) e = std::uniform_int_distribution<std::int32_t>(0, 9)(random);

  const std::vector peers{peer_of(python, "tensorflow", threads),
                          peer_of(python, "torch", threads)};
  const auto taken = bench::in_turns_with(
      peers, "lenet", bench::timed([&] { bench::keep(step(images, labels)); }, 0.05), 15);
  const std::string work = "LeNet, Adam, batch 64, " + of_threads(threads);
  bench::time_row(work, {taken[0], taken[1]}, "TensorFlow", bench::at_most(1.6));
  bench::time_row(work, {taken[0], taken[2]}, "torch", {});
}

/// The loss of a layer over sequences, and its gradients.
void recurrent(const std::string& python, int threads) {
  constexpr int batch = 64, steps = 20, units = 128;
  graph own;
  auto in_own = as_default(own);
  placeholder<float, batch, steps, units> x("x");
  auto loss = mean(square(lstm<units>(x, "lstm").outputs));
  const auto gradients = sgd(1).compute_gradients(loss);

  session s({.intra_op_threads = threads});
  s.run(initialize_all());
  auto step = s.prepare(loss, gradients.at(0).gradient, gradients.at(1).gradient, feeds(x));
  std::mt19937 random(1);
  ndarray<float, batch, steps, units> sequences;
  for (auto& e : sequences) e = std::normal_distribution<float>()(random);

  const std::vector peers{peer_of(python, "torch", threads)};
  const auto taken = bench::in_turns_with(
      peers, "lstm", bench::timed([&] { bench::keep(step(sequences)); }, 0.02), 21);
  bench::time_row(str("LSTM, 20 steps of 64 x 128, gradients, ", of_threads(threads)),
                  {taken[0], taken[1]}, "torch", bench::at_most(1.2));
}

constexpr std::size_t pixels = 762;  // records of 800 bytes
using image_and_label = std::pair<std::vector<std::uint8_t>, std::int64_t>;

/// One image and its label from an encoded tf.Example, with protozero alone.
void decode_by_hand(std::string_view record, image_and_label& to) {
  protozero::pbf_reader message(record.data(), record.size());
  while (message.next(1)) {  // features
    auto features = message.get_message();
    while (features.next(1)) {  // an entry of the map
      auto entry = features.get_message();
      protozero::data_view name;
      while (entry.next()) {
        if (entry.tag() == 1) {
          name = entry.get_view();
          continue;
        }
        auto feature = entry.get_message();
        while (feature.next()) {
          auto list = feature.get_message();
          while (list.next(1))
            if (std::string_view(name.data(), name.size()) == "image") {
              const auto bytes = list.get_view();
              std::memcpy(to.first.data(), bytes.data(), std::min(bytes.size(), pixels));
            } else if (list.wire_type() == protozero::pbf_wire_type::varint) {
              to.second = list.get_int64();
            } else {
              for (auto v : list.get_packed_int64()) to.second = v;
            }
        }
      }
    }
  }
}

/// Reads a whole file into a buffer that is there.
void read_plainly(const std::string& path, std::span<char> to) {
  const int fd = open(path.c_str(), O_RDONLY);
  expect(fd >= 0, path.c_str());
  for (std::size_t done = 0; done < to.size();) {
    const ssize_t n = read(fd, to.data() + done, to.size() - done);
    expect(n > 0, path.c_str());
    done += static_cast<std::size_t>(n);
  }
  close(fd);
}

void records(const std::string& python, const scratch_folder& folder) {
  constexpr int count = 50'000;
  const std::string path = folder / "examples.tfrecord";
  {
    record_writer out(path);
    std::string image(pixels, '\0');
    std::mt19937 random(1);
    for (int i = 0; i < count; ++i) {
      for (auto& c : image) c = static_cast<char>(random());
      const std::string record =
          example().set("image", std::string_view(image)).set("label", i % 10).encode();
      if (i == 0) expect(record.size() == 800, "the size of a record");
      out.write(record);
    }
    out.close();
  }
  image_and_label to{std::vector<std::uint8_t>(pixels), 0};
  const auto deft = [&] {
    record_reader in(path);
    example_view view;
    while (auto record = in.next()) {
      view.parse(*record);
      const std::string_view image = view.one_bytes("image");
      std::memcpy(to.first.data(), image.data(), std::min(image.size(), pixels));
      to.second = view.one_integer("label");
      bench::keep(to);
    }
  };
  std::vector<char> file(std::filesystem::file_size(path));
  const auto by_hand = [&] {
    read_plainly(path, file);
    const auto masked = [](const char* data, std::size_t bytes) {
      const std::uint32_t c = crc32c({data, bytes});
      return ((c >> 15) | (c << 17)) + 0xa282ead8u;
    };
    for (const char* at = file.data(); at < file.data() + file.size();) {
      std::uint64_t length;
      std::uint32_t sums[2];
      std::memcpy(&length, at, 8);
      std::memcpy(&sums[0], at + 8, 4);
      std::memcpy(&sums[1], at + 12 + length, 4);
      expect(sums[0] == masked(at, 8) && sums[1] == masked(at + 12, length), "a checksum");
      decode_by_hand({at + 12, length}, to);
      bench::keep(to);
      at += length + 16;
    }
  };
  std::vector<bench::measure> all{bench::timed(deft), bench::timed(by_hand)};
  if (!python.empty()) all.push_back(peer_of(python, "tensorflow", 2).turns("records " + path));
  const auto taken = bench::in_turns(all, 15);
  const auto speed = [](double seconds) { return bench::text(count / seconds / 1e6, "M/s"); };
  const std::string work = "tf.Example records of 800 bytes, read and decoded";
  bench::row(work, speed(taken[0]), speed(taken[1]) + " protozero by hand", taken[1] / taken[0],
             bench::at_least(0.5));
  if (!python.empty())
    bench::row(work, speed(taken[0]), speed(taken[2]) + " tf.data", taken[2] / taken[0], {});
}

void checkpoint(const scratch_folder& folder) {
  constexpr int count = 10, elements = 10'000'000;
  constexpr double bytes = 4. * count * elements;
  graph own;
  auto in_own = as_default(own);
  std::vector<variable<float, elements>> variables;
  for (int i = 0; i < count; ++i) variables.emplace_back(str("v", i), ones());
  session s;
  s.run(initialize_all());
  saver save({.max_to_keep = 1});
  const std::string plain = folder / "plain", saved = folder / "model";
  std::vector<any_array> parts;  // in huge pages, as the variables are
  for (int i = 0; i < count; ++i) parts.push_back(ndarray<float, elements>().array());
  const auto bytes_of = [](any_array& a) {
    return std::span(static_cast<char*>(a.mutable_raw()), a.bytes());
  };
  for (auto& p : parts) std::ranges::fill(bytes_of(p), char{1});

  const bench::measure write = [&] {
    return bench::seconds_of(
        [&] {
          const int fd = open((plain + ".tmp").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
          expect(fd >= 0, plain.c_str());
          for (auto& p : parts) {
            auto left = bytes_of(p);
            while (!left.empty()) {
              const ssize_t n = ::write(fd, left.data(), left.size());
              expect(n > 0, plain.c_str());
              left = left.subspan(static_cast<std::size_t>(n));
            }
          }
          expect(fsync(fd) == 0, plain.c_str());
          close(fd);
          std::filesystem::rename(plain + ".tmp", plain);
        },
        1);
  };
  const bench::measure to_disk = [&] { return bench::seconds_of([&] { save.save(s, saved); }, 1); };
  bench::speed_row("checkpoint of 400 MB, saved with fsync", bytes,
                   bench::in_turns(to_disk, write, 9), "plain file", bench::at_least(0.9));

  // Both files are in the system's cache.
  const bench::measure read = [&] {
    return bench::seconds_of(
        [&] {
          const int fd = open(plain.c_str(), O_RDONLY);
          expect(fd >= 0, plain.c_str());
          for (auto& p : parts) {
            auto left = bytes_of(p);
            while (!left.empty()) {
              const ssize_t n = ::read(fd, left.data(), left.size());
              expect(n > 0, plain.c_str());
              left = left.subspan(static_cast<std::size_t>(n));
            }
          }
          close(fd);
        },
        1);
  };
  const bench::measure from_disk = [&] {
    return bench::seconds_of([&] { save.restore(s, saved); }, 1);
  };
  bench::speed_row("checkpoint of 400 MB, restored from the page cache", bytes,
                   bench::in_turns(from_disk, read, 15), "plain file", bench::at_least(0.9));
}

/// A step of an embedding: reads rows, computes a loss of them, and changes the same rows.
void embedding() {
  constexpr int rows = 100'000, width = 128, count = 1024, batches = 20;
  constexpr float rate = 0.01f;
  using ids = ndarray<std::int32_t, count>;
  std::mt19937 random(1);
  std::vector<ids> drawn(batches);
  for (auto& a : drawn)
    for (auto& e : a) e = std::uniform_int_distribution<std::int32_t>(0, rows - 1)(random);

  graph own;
  auto in_own = as_default(own);
  placeholder<std::int32_t, count> id("id");
  variable<float, rows, width> table("table", random_normal(0, .05));
  auto loss = sum(square(gather(table, id)));
  auto train = sgd(rate).minimize(loss);
  session s({.intra_op_threads = 1});
  s.run(initialize_all());
  auto step = s.prepare(loss, train, feeds(id));
  const auto deft = [&, k = 0]() mutable {
    bench::keep(step(drawn[static_cast<std::size_t>(k)]));
    k = (k + 1) % batches;
  };

  // Forwards, backwards and the update, each a pass over the rows.
  ndarray<float, rows, width> own_table;
  for (auto& e : own_table) e = .05f;
  std::vector<float> read(count * width);
  const auto by_hand = [&, k = 0]() mutable {
    const ids& chosen = drawn[static_cast<std::size_t>(k)];
    k = (k + 1) % batches;
    float* const t = own_table.data();
    float* const x = read.data();
    for (int i = 0; i < count; ++i)
      std::memcpy(x + i * width, t + std::int64_t{chosen(i)} * width, width * sizeof(float));
    constexpr int lanes = 64;  // the compiler does not reorder a sum
    float sums[lanes] = {};
    for (int i = 0; i < count * width; i += lanes)
      for (int l = 0; l < lanes; ++l) {
        const float v = x[i + l];
        sums[l] += v * v;
        x[i + l] = 2 * v;
      }
    bench::keep(sums);
    for (int i = 0; i < count; ++i) {
      float* const __restrict row = t + std::int64_t{chosen(i)} * width;
      for (int j = 0; j < width; ++j) row[j] -= rate * x[i * width + j];
    }
  };
  bench::time_row("embedding 100,000 x 128, 1,024 ids, SGD, 1 thread",
                  bench::in_turns(bench::timed(deft), bench::timed(by_hand)), "by hand",
                  bench::at_most(1.3));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string python = bench::python_of(bench::flag(argc, argv, "peers"));
  const scratch_folder folder(bench::flag(argc, argv, "folder"));
  if (!python.empty())
    for (int threads : {1, 2}) lenet(python, threads);
  if (!python.empty())
    for (int threads : {1, 2}) recurrent(python, threads);
  records(python, folder);
  checkpoint(folder);
  embedding();
}
