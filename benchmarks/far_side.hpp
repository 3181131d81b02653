// SPDX-License-Identifier: Apache-2.0
// benchmarks/far_side.hpp: the remote processes of the benchmarks: a cluster of three workers
// for each transport, and bare blocking sockets.
//
//     this process ──── session, by TCP ──── worker 0 ──── tensors ──── workers 1, 2
//          ├─────────── session, by TLS ──── …
//          ├─────────── session, local ───── …                a local socket and shared memory
//          └─────────── bare socket ──────── the yardstick's process
#pragma once
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include <array>
#include <deft/deft.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "bare.hpp"
#include "bench.hpp"

namespace bench {

/// The processor time that a process has used so far, in all its threads; 0 is this process.
inline double processor_seconds(pid_t pid) {
  clockid_t clock;
  timespec t;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) std::abort();
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Child processes that end with this one. Start them before any thread.
class processes {
 public:
  processes() = default;
  processes(const processes&) = delete;
  ~processes() {
    for (auto pid : pids_) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
  }
  template <class F>
  pid_t start(F f) {
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      f();
      _exit(0);
    }
    pids_.push_back(pid);
    return pid;
  }

 private:
  std::vector<pid_t> pids_;
};

/// Certificates from scripts/make_certificates, deleted with this object.
class certificates {
 public:
  certificates() {
    folder_ = (std::filesystem::temp_directory_path() / "deft_bench_XXXXXX").string();
    if (!mkdtemp(folder_.data())) std::abort();
    const std::string make = deft::ext::str(BENCH_PEERS "/../../scripts/make_certificates ",
                                            folder_, " 'worker/*' client >", folder_, "/said");
    if (std::system(make.c_str()) != 0) std::abort();
  }
  ~certificates() { std::filesystem::remove_all(folder_); }
  certificates(const certificates&) = delete;

  deft::credentials of(const std::string& name) const {
    return {.certificate = deft::ext::str(folder_, "/", name, ".crt"),
            .key = deft::ext::str(folder_, "/", name, ".key"),
            .authority = folder_ + "/authority.crt"};
  }

 private:
  std::string folder_;
};

/// Three workers that use one transport for all connections.
struct cluster {
  std::string transport, target;
  deft::credentials client;
  std::vector<pid_t> tasks;
};

struct far_side {
  certificates files;
  processes children;
  std::vector<cluster> clusters;
  std::string bare;
  pid_t bare_process;

  /// Bare sockets carry up to `most` bytes each way.
  explicit far_side(std::int64_t most) {
    setenv("DEFT_LOCAL_SOCKETS", "1", 1);
    for (const char* transport : {"TCP", "TLS", "local"}) clusters.push_back(start(transport));
    const int fd = deft::ext::listen_socket("localhost:0");
    bare = deft::ext::address_of_socket(fd);
    bare_process = children.start([&] { serve_bare(fd, most); });
    close(fd);
  }

  /// A session on each cluster, in the order of `clusters`, for steps on one graph.
  std::vector<deft::session> sessions(deft::session_options options = {}) const {
    std::vector<deft::session> s;
    for (const auto& c : clusters) {
      options.credentials = c.client;
      s.emplace_back(c.target, options);
    }
    return s;
  }

  /// A turn of `calls` on a new connection: the process serves one at a time.
  measure bare_turn(const request& r, int calls) const {
    return [this, r, calls] {
      bare_client c(bare, std::max(r.more, r.answer));
      c.call(r);
      return seconds_of([&] { c.call(r); }, calls);
    };
  }

 private:
  cluster start(const std::string& transport) {
    std::array<int, 3> sockets;
    std::vector<std::string> addresses;
    for (int& fd : sockets)
      addresses.push_back(
          deft::ext::address_of_socket(fd = deft::ext::listen_socket("localhost:0")));
    const deft::cluster_spec spec{{"worker", addresses}};
    const bool tls = transport == "TLS";
    auto of = [&](const char* name) { return tls ? files.of(name) : deft::credentials{}; };
    cluster c{transport, "deft://" + spec.address("worker", 0), of("client"), {}};
    for (std::size_t task = 0; task < sockets.size(); ++task)
      c.tasks.push_back(children.start([&] {
        // Callers switch to a local socket if the task offers one.
        if (transport != "local") setenv("DEFT_LOCAL_SOCKETS", "0", 1);
        deft::server(spec, "worker", static_cast<int>(task),
                     {.listen_fd = sockets[task], .credentials = of("worker-all")})
            .join();
      }));
    for (int fd : sockets) close(fd);
    return c;
  }
};

inline std::string worker(int task) { return deft::ext::str("/job:worker/task:", task); }

/// Prepares the same step on each session.
template <class... X>
auto prepared(std::vector<deft::session>& sessions, const X&... x) {
  std::vector<decltype(sessions[0].prepare(x...))> steps;
  for (auto& s : sessions) steps.push_back(s.prepare(x...));
  return steps;
}

inline void initialize(std::vector<deft::session>& sessions) {
  for (auto& s : sessions) s.run(deft::initialize_all());
}

}  // namespace bench
