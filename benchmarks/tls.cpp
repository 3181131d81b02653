// SPDX-License-Identifier: Apache-2.0
// benchmarks/tls.cpp: what TLS costs between processes, against what one core encrypts, and against
// bare sockets with the same cipher at both ends, one thread each: what can be had without more of
// them.
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
#include <vector>

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

/// AES-128-GCM in records of 16 KB, each with a tag. What it does takes as long both ways.
class bare_cipher {
 public:
  bare_cipher() : context_(EVP_CIPHER_CTX_new()) {
    EVP_EncryptInit_ex(context_, EVP_aes_128_gcm(), nullptr, key_, iv_);
  }
  ~bare_cipher() { EVP_CIPHER_CTX_free(context_); }
  bare_cipher(const bare_cipher&) = delete;
  void apply(const char* from, char* to, std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes; at += record) {
      int n = 0;
      unsigned char tag[16];
      ++iv_[0];
      EVP_EncryptInit_ex(context_, nullptr, nullptr, nullptr, iv_);
      EVP_EncryptUpdate(context_, reinterpret_cast<unsigned char*>(to + at), &n,
                        reinterpret_cast<const unsigned char*>(from + at), record);
      EVP_EncryptFinal_ex(context_, tag, &n);
      EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_GET_TAG, sizeof tag, tag);
      bench::keep(tag);
    }
  }
  static constexpr int record = 16 * 1024;

 private:
  EVP_CIPHER_CTX* context_;
  unsigned char key_[16] = {}, iv_[12] = {};
};

/// Bytes that go through a cipher, and a socket, in pieces.
class sealed_bytes {
 public:
  sealed_bytes() : memory_(bench::detail::touched(bulk)), piece_(at_once) {}
  bool send(int fd) {
    return in_pieces([&](char* at) {
      cipher_.apply(at, piece_.data(), at_once);
      return bench::detail::send_all(fd, piece_.data(), at_once);
    });
  }
  bool receive(int fd) {
    return in_pieces([&](char* at) {
      if (!bench::detail::receive_all(fd, piece_.data(), at_once)) return false;
      cipher_.apply(piece_.data(), at, at_once);
      return true;
    });
  }

 private:
  static constexpr std::int64_t at_once = 512 * 1024;
  template <class F>
  bool in_pieces(F f) {
    auto* const begin = static_cast<char*>(memory_.mutable_raw());
    for (std::int64_t at = 0; at < bulk; at += at_once)
      if (!f(begin + at)) return false;
    return true;
  }
  bare_cipher cipher_;
  any_array memory_;
  std::vector<char> piece_;
};

/// For each byte that comes on a connection, all of them.
[[noreturn]] void serve_sealed(int listening) {
  sealed_bytes bytes;
  for (char c = 0;;) {
    const int fd = accept(listening, nullptr, nullptr);
    if (fd < 0) _exit(0);
    bench::detail::undelayed(fd);
    while (bench::detail::receive_all(fd, &c, 1) && bytes.send(fd)) {
    }
    close(fd);
  }
}

struct far_side {
  certificates files;
  std::vector<pid_t> children;
  cluster_spec cluster;
  std::string bare, sealed;

  far_side() {
    int sockets[] = {listen_socket("localhost:0"), listen_socket("localhost:0"),
                     listen_socket("localhost:0"), listen_socket("localhost:0")};
    bare = address_of_socket(sockets[2]);
    sealed = address_of_socket(sockets[3]);
    cluster = {{"worker", {address_of_socket(sockets[0]), address_of_socket(sockets[1])}}};
    for (int task : {0, 1})
      start([&] {
        const auto own = files.of("worker-all");
        server(cluster, "worker", task, {.listen_fd = sockets[task], .credentials = own}).join();
      });
    start([&] { bench::serve_bare(sockets[2], 64); });
    start([&] { serve_sealed(sockets[3]); });
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
  bare_cipher aes;
  std::vector<char> record(bare_cipher::record);  // stays in the cache
  bench::bare_client c(far.sealed, 64);
  sealed_bytes sealed;
  const bench::measure cipher = [&] {
    return bench::seconds_of(
        [&] {
          for (std::int64_t i = 0; i < bulk / bare_cipher::record; ++i)
            aes.apply(record.data(), record.data(), bare_cipher::record);
        },
        1);
  };
  const bench::measure socket = [&] {
    return bench::seconds_of(
        [&] {
          if (!bench::detail::send_all(c.fd(), record.data(), 1) || !sealed.receive(c.fd()))
            std::abort();
        },
        1);
  };
  auto measured = [&](const std::string& work, auto&& f) {
    const auto m = bench::in_turns({[&] { return bench::seconds_of(f, 1); }, cipher, socket}, 21);
    bench::speed_row(work, bulk, {m[0], m[1]}, "AES-128-GCM of a core", bench::at_least(0.7));
    bench::speed_row(work, bulk, {m[0], m[2]}, "socket, AES at both ends", {});
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
