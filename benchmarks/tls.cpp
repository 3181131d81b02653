// SPDX-License-Identifier: Apache-2.0
// benchmarks/tls.cpp: what TLS costs between processes, against bare sockets and against what one
// core encrypts.
//
//     this process ──── session, TLS ──── worker 0 ──── tensors, TLS ──── worker 1
//          └─────────── bare socket ──── the yardstick's process
#include <openssl/evp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <deft/deft.hpp>
#include <filesystem>
#include <optional>

#include "bare.hpp"
#include "bench.hpp"

namespace {

using namespace deft;

constexpr std::int64_t columns = 1024, rows = 32 * 1024;
constexpr std::int64_t bulk = rows * columns * 4;

/// Certificates of scripts/make_certificates, as long as this lives.
class certificates {
 public:
  certificates() {
    char name[] = "/tmp/deft_bench_XXXXXX";
    if (!mkdtemp(name)) std::abort();
    folder_ = name;
    const std::string make = str(BENCH_PEERS "/../../scripts/make_certificates ", folder_,
                                 " 'worker/*' client >", folder_, "/said");
    if (std::system(make.c_str()) != 0) std::abort();
  }
  ~certificates() { std::filesystem::remove_all(folder_); }
  credentials of(const std::string& name) const {
    return {.certificate = str(folder_, "/", name, ".crt"),
            .key = str(folder_, "/", name, ".key"),
            .authority = folder_ + "/authority.crt"};
  }

 private:
  std::string folder_;
};

struct far_side {
  certificates files;
  std::vector<pid_t> children;
  cluster_spec cluster;
  std::string bare;

  far_side() {
    int sockets[] = {listen_socket("localhost:0"), listen_socket("localhost:0"),
                     listen_socket("localhost:0")};
    bare = address_of_socket(sockets[2]);
    cluster = {{"worker", {address_of_socket(sockets[0]), address_of_socket(sockets[1])}}};
    for (int task : {0, 1})
      start([&] {
        const auto own = files.of("worker-all");
        server(cluster, "worker", task, {.listen_fd = sockets[task], .credentials = own}).join();
      });
    start([&] { bench::serve_bare(sockets[2], bulk); });
    for (int fd : sockets) close(fd);
  }
  ~far_side() {
    for (auto pid : children) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
  }
  /// A process that ends with this one; before there are threads.
  template <class F>
  void start(F f) {
    pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      f();
      _exit(0);
    }
    children.push_back(pid);
  }
  session_options options() const { return {.credentials = files.of("client")}; }
  std::string target() const { return "deft://" + cluster.address("worker", 0); }
};

std::string worker(int task) { return str("/job:worker/task:", task); }

/// Encrypts so many bytes in records of 16 KB, each with a tag, from memory that is in the cache.
class bare_cipher {
 public:
  explicit bare_cipher(const EVP_CIPHER* cipher) : context_(EVP_CIPHER_CTX_new()) {
    EVP_EncryptInit_ex(context_, cipher, nullptr, key_, iv_);
  }
  ~bare_cipher() { EVP_CIPHER_CTX_free(context_); }
  bare_cipher(const bare_cipher&) = delete;
  void encrypt(std::int64_t bytes) {
    for (; bytes > 0; bytes -= static_cast<std::int64_t>(sizeof from_)) {
      int n = 0;
      unsigned char tag[16];
      ++iv_[0];
      EVP_EncryptInit_ex(context_, nullptr, nullptr, nullptr, iv_);
      EVP_EncryptUpdate(context_, to_, &n, from_, sizeof from_);
      EVP_EncryptFinal_ex(context_, to_ + n, &n);
      EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_GET_TAG, sizeof tag, tag);
      bench::keep(tag);
    }
  }

 private:
  EVP_CIPHER_CTX* context_;
  unsigned char key_[32] = {}, iv_[12] = {}, from_[16 * 1024] = {}, to_[16 * 1024 + 16];
};

void steps(const far_side& far) {
  session s(far.target(), far.options());
  auto there = on(device(worker(0)));
  variable<float> v("v", zeros());
  s.run(initialize_all());
  auto step = s.prepare(v + 1.f);
  bench::bare_client c(far.bare, 64);
  bench::time_row("step on a remote task, scalar fetched, TLS",
                  bench::in_turns(bench::timed([&] { bench::keep(step()); }), bench::timed([&] {
                                    c.call({0, sizeof(bench::request)});
                                  })),
                  "bare ping-pong", {});
}

void bulk_transfers(const far_side& far) {
  session s(far.target(), far.options());
  using matrix = ndarray<float, rows, columns>;
  std::optional<variable<float, rows, columns>> v[2];
  for (int task : {0, 1}) {
    auto scope = on(device(worker(task)));
    v[task].emplace(str("bulk", task), ones());
  }
  s.run(initialize_all());
  auto there = on(device(worker(0)));
  bare_cipher aes(EVP_aes_128_gcm());
  auto measured = [&](const std::string& work, auto&& f) {
    auto o = bench::in_turns([&] { return bench::seconds_of(f, 1); },
                             [&] { return bench::seconds_of([&] { aes.encrypt(bulk); }, 1); }, 21);
    bench::speed_row(work, bulk, o, "AES-128-GCM of a core", bench::at_least(0.7));
  };

  auto fetch = s.prepare(tensor<float, rows, columns>(*v[0]));
  measured("128 MB fetched, TLS", [&] { bench::keep(fetch()); });

  // One row is looked at where the tensor has come.
  placeholder<float, rows, columns> x("x");
  auto first = constant({0});
  auto feed = s.prepare(gather(x, first), feeds(x));
  matrix value;
  measured("128 MB fed, TLS", [&] { bench::keep(feed(value)); });
  auto across = s.prepare(gather(*v[1], first));
  measured("128 MB from task to task, TLS", [&] { bench::keep(across()); });
}

}  // namespace

int main() {
  far_side far;
  steps(far);
  bulk_transfers(far);
}
