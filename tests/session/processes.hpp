// SPDX-License-Identifier: Apache-2.0
// tests/session/processes.hpp: runs programs of tests/programs, and others, as child processes.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <boost/process.hpp>
#include <deft/transport/listener.hpp>
#include <memory>
#include <string>
#include <vector>

#include "programs.hpp"
#include "testing.hpp"

namespace testing {

/// Children started while it lives do not ignore signals, unlike those of a shell's background job.
class default_signals {
 public:
  default_signals()
      : interrupt_(::signal(SIGINT, SIG_DFL)), terminate_(::signal(SIGTERM, SIG_DFL)) {}
  ~default_signals() { ::signal(SIGINT, interrupt_), ::signal(SIGTERM, terminate_); }
  default_signals(const default_signals&) = delete;

 private:
  void (*interrupt_)(int);
  void (*terminate_)(int);
};

/// A child process whose output is read line by line. The destructor kills it.
class child_program {
 public:
  /// `name`: a program of tests/programs, or a path.
  child_program(const std::string& name, std::vector<std::string> arguments)
      : child_(program(name), boost::process::args(arguments), boost::process::std_out > out_,
               boost::process::std_err > err_) {}
  ~child_program() {
    if (child_.running()) child_.terminate();
  }

  /// The next line of its output; empty at the end.
  std::string line() {
    std::string text;
    std::getline(out_, text);
    return text;
  }
  std::vector<std::string> lines() {
    std::vector<std::string> all;
    for (std::string text; std::getline(out_, text);) all.push_back(text);
    return all;
  }
  /// The next line of its standard error.
  std::string complaint() {
    std::string text;
    std::getline(err_, text);
    return text;
  }
  /// Its standard error; call after lines().
  std::string complaints() {
    return {std::istreambuf_iterator<char>(err_), std::istreambuf_iterator<char>()};
  }
  int wait() {
    child_.wait();
    return child_.exit_code();
  }
  int pid() const { return child_.id(); }
  void signal(int number) { ::kill(child_.id(), number); }

 private:
  boost::process::ipstream out_, err_;
  boost::process::child child_;
};

/// The tasks of a job as child processes. Each inherits its own listening socket only, so its port
/// is closed when it ends.
class child_job {
 public:
  using flags = std::vector<std::string>;

  /// Starts a program as parameter servers and workers, each kind with its own flags.
  child_job(const std::string& program, int ps, const flags& of_ps, int workers = 0,
            const flags& of_workers = {})
      : ps_(ps) {
    std::vector<int> sockets;
    for (int i = 0; i < ps + workers; ++i) {
      sockets.push_back(deft::ext::listen_socket("localhost:0"));
      addresses_.push_back(deft::ext::address_of_socket(sockets.back()));
      ::fcntl(sockets.back(), F_SETFD, FD_CLOEXEC);
    }
    const auto first_worker = addresses_.begin() + ps;
    flags hosts;
    if (ps)
      hosts.push_back("--ps_hosts=" +
                      deft::ext::join(flags(addresses_.begin(), first_worker), ","));
    if (workers)
      hosts.push_back("--worker_hosts=" +
                      deft::ext::join(flags(first_worker, addresses_.end()), ","));
    for (int i = 0; i < ps + workers; ++i) {
      const bool is_ps = i < ps;
      const int socket = sockets[static_cast<std::size_t>(i)];
      flags all = is_ps ? of_ps : of_workers;
      all.insert(all.end(), hosts.begin(), hosts.end());
      all.push_back(is_ps ? "--job_name=ps" : "--job_name=worker");
      all.push_back(deft::ext::str("--task_index=", is_ps ? i : i - ps));
      all.push_back(deft::ext::str("--listen_fd=", socket));
      ::fcntl(socket, F_SETFD, 0);
      tasks_.push_back(std::make_unique<child_program>(program, all));
      ::close(socket);
    }
  }

  child_program& ps(int i) { return *tasks_[static_cast<std::size_t>(i)]; }
  child_program& worker(int i) { return ps(ps_ + i); }
  /// The target of a session on parameter server `i`.
  std::string target_of_ps(int i) const {
    return "deft://" + addresses_[static_cast<std::size_t>(i)];
  }
  const std::string& address_of_worker(int i) const {
    return addresses_[static_cast<std::size_t>(ps_ + i)];
  }

 private:
  int ps_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<child_program>> tasks_;
};

}  // namespace testing
