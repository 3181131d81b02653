// SPDX-License-Identifier: Apache-2.0
// benchmarks/gpu.cpp: steps on a GPU against the same work by hand, and against other libraries. A
// step waits until the GPU is done; large arrays stay on the GPU.
//
// bench_gpu [--peers ENVIRONMENT] [--small]
// Peers are the libraries that the environment's python, or python3, can import. A simulated GPU
// (DEFT_SIMULATED_GPUS=1) is for testing this program: all sizes are small, and there are no goals;
// --peer_device cpu then lets the peers run, too.
#include <deft/deft.hpp>
#include <map>

#include "bench.hpp"
#include "gpu_limits.hpp"
#include "mlp.hpp"
#include "peers.hpp"
#include "program.hpp"

namespace {

using namespace deft;
using namespace deft::ext;

struct sizes {
  std::int64_t chain, parameters;  // floats
  std::int64_t rows, classes;      // of logits
  int product;                     // extents of square matrices
  std::int64_t sums;               // extents of square matrices that are summed and transposed
  std::int64_t moved;              // floats fed and fetched
  int turns;
};
constexpr sizes large{100'000'000, 100'000'000, 65'536, 1000, 4096, 16'384, 1 << 25, 15};
constexpr sizes small{10'000, 10'000, 64, 10, 64, 128, 1 << 16, 3};
constexpr int tiny_nodes = 1000;

double bytes_of(std::int64_t floats) { return sizeof(float) * static_cast<double>(floats); }

/// Work on /gpu:0, in a separate graph.
struct model {
  explicit model(session_options options = {}) : s(std::move(options)) {}

  any_tensor variable(const std::string& name, const dims& shape,
                      const initializer& initial = random_uniform(-1, 1)) {
    return any_tensor(deft::detail::make_variable(name, {shape, dtype::float32}, initial, {}, {}));
  }

  graph own;
  graph_scope in_own = as_default(own);
  scope on_gpu = on(device("/gpu:0"));
  session s;
};

/// A row for a limit of the hardware, and one for each peer.
struct work {
  std::string name, ask;  // `ask` is the line that is sent to peers
  std::function<void()> step;
  std::string yardstick = {};
  bench::measure limit = {};  // if empty, only peers are compared with
  double bytes = 0;           // that the step must move; if 0, times are compared
  double limit_bytes = 0;     // that the limit moves
  std::optional<bench::asked> asked = {};
  std::map<std::string, bench::asked> asked_of_peers = {};
};

class table {
 public:
  table(sizes n, bool simulated, bench::gpu_limits& limits, std::vector<bench::peer> peers)
      : n_(n), simulated_(simulated), limits_(limits), peers_(std::move(peers)) {}

  int failures() const { return failures_; }

  void all() {
    copy_ = limits_.copy(sizeof(float) * static_cast<std::size_t>(n_.chain));
    attempt("chain", [&] { chain(); });
    attempt("cross entropy", [&] { cross_entropy(); });
    for (bool tf32 : {false, true}) attempt("matmul", [&] { product(tf32); });
    for (int axis : {0, 1}) attempt("sum", [&] { total(axis); });
    attempt("transpose", [&] { transposed(); });
    attempt("adagrad", [&] { adagrad(); });
    copy_ = {};
    attempt("MLP", [&] { mlp(); });
    attempt("tiny nodes", [&] { tiny(); });
    attempt("feed", [&] { feed(); });
    attempt("fetch", [&] { fetch(); });
    for (const auto& p : peers_)
      if (p.has_ended())
        std::fprintf(stderr, "%s ended before all was measured\n", p.name().c_str());
  }

 private:
  void attempt(const char* name, const std::function<void()>& f) try {
    f();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s has failed: %s\n", name, e.what());
    ++failures_;
  }

  /// Runs steps until they get no faster: programs are compiled in the background.
  void warm(const std::function<void()>& step) const {
    if (simulated_) return;
    constexpr double period = 1;  // seconds; longer than a compilation
    const bench::measure turn = [&] {
      const auto begin = std::chrono::steady_clock::now();
      std::chrono::duration<double> spent{};
      int calls = 0;
      for (; spent.count() < period; ++calls) {
        step();
        spent = std::chrono::steady_clock::now() - begin;
      }
      return spent.count() / calls;
    };
    double before = turn(), now = turn();
    for (int i = 0; i < 8 && now < 0.9 * before; ++i) before = std::exchange(now, turn());
  }

  void measure(const work& w) const {
    warm(w.step);
    std::vector<bench::measure> all{bench::timed(w.step)};
    if (w.limit) all.push_back(w.limit);
    if (!w.ask.empty())
      for (const auto& p : peers_) all.push_back(p.turns(w.ask));
    const auto taken = bench::in_turns(all, n_.turns);
    auto asked = [&](const std::optional<bench::asked>& a) {
      return simulated_ ? std::nullopt : a;
    };

    const double deft = taken[0];
    std::size_t next = 1, rows = 0;
    if (w.limit && ++rows) {
      const double limit = taken[next++];
      if (w.bytes > 0)
        bench::speed_row(w.name, w.bytes, {deft, limit * w.bytes / w.limit_bytes}, w.yardstick,
                         asked(w.asked));
      else
        bench::time_row(w.name, {deft, limit}, w.yardstick, asked(w.asked));
    }
    for (std::size_t p = 0; next < taken.size(); ++p, ++next) {
      if (taken[next] == std::numeric_limits<double>::infinity()) continue;
      const auto a = w.asked_of_peers.find(peers_[p].name());
      bench::time_row(w.name, {deft, taken[next]}, peers_[p].name(),
                      asked(a == w.asked_of_peers.end() ? std::nullopt : std::optional(a->second)));
      ++rows;
    }
    if (rows == 0) bench::row(w.name, bench::time_text(deft));
  }
  /// Compares with a copy within the GPU.
  void measure_bytes(work w, double bytes, double bound) const {
    w.yardstick = "device copy", w.limit = copy_;
    w.bytes = bytes, w.limit_bytes = 2 * bytes_of(n_.chain);
    w.asked = bench::at_least(bound);
    measure(w);
  }

  void chain() const {
    model m;
    const auto x = m.variable("x", {n_.chain}), d = m.variable("d", {n_.chain});
    const any_tensor y = square(relu(x * 1.7f + 0.3f) * 0.9f - d);
    m.s.run(initialize_all());
    measure_bytes({str("six-operation chain, ", static_cast<double>(n_.chain), " floats"),
                   str("chain ", n_.chain), m.s.prepare(group(y))},
                  3 * bytes_of(n_.chain), 0.95);
  }

  void cross_entropy() const {
    model m;
    any_array classes(dtype::int32, {n_.rows});
    for (std::int64_t i = 0; i < n_.rows; ++i)
      classes.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(i * 7919 % n_.classes);
    const auto logits = m.variable("logits", {n_.rows, n_.classes});
    const any_tensor labels(deft::detail::make_variable(
        "labels", {{n_.rows}, dtype::int32}, std::move(classes), {.trainable = false}, {}));
    const any_tensor loss = mean(softmax_cross_entropy(logits, labels));
    const auto gradient = gradients(loss, logits);
    m.s.run(initialize_all());
    measure_bytes({str("cross entropy and its gradient, ", n_.rows, "x", n_.classes),
                   str("cross_entropy ", n_.rows, " ", n_.classes),
                   m.s.prepare(group(loss, std::get<0>(gradient)))},
                  2 * bytes_of(n_.rows * n_.classes), 0.9);
  }

  void product(bool tf32) const {
    model m({.allow_tf32 = tf32});
    const auto a = m.variable("a", {n_.product, n_.product});
    const auto b = m.variable("b", {n_.product, n_.product});
    m.s.run(initialize_all());
    work w{str("matmul ", n_.product, tf32 ? ", TF32" : ", float"),
           str("product ", n_.product, tf32 ? " tf32" : " float"),
           m.s.prepare(group(matmul(a, b)))};
    w.yardstick = "cuBLAS", w.limit = limits_.product(n_.product, tf32);
    w.asked = bench::at_most(1.05);
    if (!w.limit) w.asked_of_peers.emplace("torch", *w.asked);  // torch calls cuBLAS
    measure(w);
  }

  void total(int axis) const {
    model m;
    const auto x = m.variable("x", {n_.sums, n_.sums});
    m.s.run(initialize_all());
    measure_bytes({str("sum of ", n_.sums, "x", n_.sums, " along axis ", axis),
                   str("total ", n_.sums, " ", axis), m.s.prepare(group(sum(x, axes{axis})))},
                  bytes_of(n_.sums * n_.sums), 0.9);
  }

  void transposed() const {
    model m;
    const auto x = m.variable("x", {n_.sums, n_.sums});
    m.s.run(initialize_all());
    measure_bytes({str("transpose of ", n_.sums, "x", n_.sums), str("transposed ", n_.sums),
                   m.s.prepare(group(transpose(x, {1, 0})))},
                  2 * bytes_of(n_.sums * n_.sums), 0.8);
  }

  void adagrad() const {
    model m;
    const auto w = m.variable("w", {n_.parameters}), g = m.variable("g", {n_.parameters});
    const auto a = m.variable("a", {n_.parameters}, 0.1f);
    const auto squares = assign_add(a, square(g));
    const auto update = assign_sub(w, g * 0.1f / sqrt(squares.value()));
    m.s.run(initialize_all());
    measure_bytes({str("Adagrad update, ", static_cast<double>(n_.parameters), " parameters"),
                   str("adagrad ", n_.parameters), m.s.prepare(update)},
                  5 * bytes_of(n_.parameters), 0.9);
  }

  void mlp() const {
    const scope on_gpu = on(device("/gpu:0"));
    bench::mlp<100> step(sgd(0.1), {});
    work w{"MLP 784-500-10 sgd, batch 100, fed", "mlp 100", [&] { bench::keep(step()); }};
    w.asked_of_peers.emplace("jax", bench::at_most(0.5));
    measure(w);
  }

  /// Fused by the session, and one by one, as in a captured graph.
  void tiny() const {
    for (const bool fuse : {true, false}) {
      model m({.fold = fuse, .fuse = fuse});
      const auto v = m.variable("v", {16}, 0.5f), by = m.variable("w", {16}, 0.999f);
      any_tensor end = v;
      for (int i = 0; i < tiny_nodes / 2; ++i) end = end * by + 1e-3f;
      m.s.run(initialize_all());
      work w{str(tiny_nodes, " operations on 16 floats", fuse ? "" : ", not fused"),
             fuse ? "tiny" : "", m.s.prepare(group(end))};
      w.yardstick = "captured graph", w.limit = limits_.graph(tiny_nodes);
      w.asked = bench::at_most(1);
      w.asked_of_peers.emplace("torch", bench::at_most(0.1));
      measure(w);
    }
  }

  void feed() const {
    model m;
    placeholder<float, dyn> x("x");
    const auto v = m.variable("v", {n_.moved}, 0.f);
    m.s.run(initialize_all());
    ndarray<float, dyn> host(n_.moved);
    std::fill(host.begin(), host.end(), 1.f);  // allocates its pages
    move(
        "fed", "feed", [step = m.s.prepare(assign(v, x), feeds(x)), &host] { step(host); },
        limits_.copy_in(sizeof(float) * static_cast<std::size_t>(n_.moved)));
  }
  void fetch() const {
    model m;
    const auto v = m.variable("v", {n_.moved});
    m.s.run(initialize_all());
    move(
        "fetched", "fetch", [step = m.s.prepare(v)] { bench::keep(step()); },
        limits_.copy_out(sizeof(float) * static_cast<std::size_t>(n_.moved)));
  }
  void move(const char* done, const char* ask, std::function<void()> step,
            bench::measure limit) const {
    work w{str(bytes_of(n_.moved) / (1 << 20), " MB ", done), str(ask, " ", n_.moved),
           std::move(step)};
    w.yardstick = "pinned copy", w.limit = std::move(limit);
    w.bytes = w.limit_bytes = bytes_of(n_.moved);
    w.asked = bench::at_least(0.9);
    measure(w);
  }

  const sizes n_;
  const bool simulated_;
  bench::gpu_limits& limits_;
  const std::vector<bench::peer> peers_;
  bench::measure copy_;  // of as many bytes as the chain's arrays have
  int failures_ = 0;
};

/// The peers that are ready; prints what each of them reports.
std::vector<bench::peer> ready_peers(int argc, char** argv) {
  const std::string environment = bench::flag(argc, argv, "peers");
  std::string python = environment.empty() ? "python3" : bench::python_of(environment);
  if (python.empty())
    throw std::runtime_error("--peers " + environment + ": there is no python in its bin/");
  std::vector<bench::peer> started, ready;
  for (const auto& [name, engine] :
       {std::pair{"torch", "torch"}, {"torch compiled", "compiled"}, {"jax", "jax"}}) {
    std::vector<std::string> command{python, bench::peers_folder() + "/gpu.py", engine};
    if (auto device = bench::flag(argc, argv, "peer_device"); !device.empty())
      command.push_back(device);
    started.emplace_back(name, command);
  }
  for (auto& p : started) {
    const std::string said = p.line();
    if (said.starts_with("ready"))
      std::printf("- %s: %s\n", p.name().c_str(), said.substr(6).c_str()), ready.push_back(p);
    else
      std::printf("- %s is left out: %s\n", p.name().c_str(),
                  said.empty() ? (python + " has not run its script").c_str() : said.c_str());
  }
  return ready;
}

}  // namespace

int main(int argc, char** argv) try {
  std::optional<device_info> gpu;
  for (auto& d : session().devices())
    if (d.name->type == "gpu" && d.name->index == 0) gpu = d;
  if (!gpu) {
#ifdef BENCH_HAS_CUDA
    const char* why = "CUDA shows none";
#else
    const char* why = "deft was built without CUDA";
#endif
    std::fprintf(stderr,
                 "bench_gpu: nothing was measured, as there is no GPU: %s. "
                 "DEFT_SIMULATED_GPUS=1 tries this program on a simulated one.\n",
                 why);
    return 0;
  }
  const bool simulated = gpu->description == "simulated";
  const bool in_small =
      simulated || std::find(argv, argv + argc, std::string("--small")) != argv + argc;

  std::printf("\n## %s\n\n", to_string(*gpu).c_str());
  auto peers = ready_peers(argc, argv);  // before this process uses the GPU
  std::unique_ptr<bench::gpu_limits> limits;
#ifdef BENCH_HAS_CUDA
  if (!simulated) limits = bench::cuda_limits();
#endif
  if (!limits) limits = std::make_unique<bench::host_limits>();
  std::printf("- deft %s; %s\n\n", DEFT_VERSION, limits->about().c_str());
  std::printf("| %-54s | %11s | %-30s | %6s | asked |\n|---|---|---|---|---|\n", "work", "deft",
              "yardstick", "ratio");
  table t(in_small ? small : large, simulated, *limits, std::move(peers));
  t.all();
  return t.failures() == 0 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "bench_gpu: %s\n", e.what());
  return 1;
}
