// SPDX-License-Identifier: Apache-2.0
// tests/train/training.hpp: runs the tasks of a job as threads of the test.
#pragma once
#include <deft/deft.hpp>
#include <deft/transport/listener.hpp>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "../session/sessions.hpp"

namespace testing {

/// A job whose processes are threads: each task reads its flags and runs `body`; a ps joins its
/// server. Ports are chosen beforehand and passed on by `--listen_fd`, as by a launcher.
class threaded_job {
 public:
  threaded_job(int ps, int workers, std::vector<std::string> flags = {})
      : flags_(std::move(flags)) {
    for (int i = 0; i < ps + workers; ++i) {
      bool is_ps = i < ps;
      int fd = deft::ext::listen_socket("localhost:0");
      auto& hosts = is_ps ? ps_hosts_ : worker_hosts_;
      hosts += (hosts.empty() ? "" : ",") + deft::ext::address_of_socket(fd);
      fds_.push_back(fd);
    }
    ps_ = ps;
  }

  /// Runs all tasks until they end; their exit codes.
  std::vector<int> run(const std::function<void(deft::task&)>& body) {
    std::vector<int> codes(fds_.size(), -1);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < fds_.size(); ++i)
      threads.emplace_back([&, i] { codes[i] = run_one(static_cast<int>(i), body); });
    for (auto& t : threads) t.join();
    return codes;
  }

 private:
  int run_one(int i, const std::function<void(deft::task&)>& body) {
    bool is_ps = i < ps_;
    std::vector<std::string> words{
        "test", is_ps ? "--job_name=ps" : "--job_name=worker",
        deft::ext::str("--task_index=", is_ps ? i : i - ps_), "--worker_hosts=" + worker_hosts_,
        deft::ext::str("--listen_fd=", fds_[static_cast<std::size_t>(i)])};
    if (ps_) words.push_back("--ps_hosts=" + ps_hosts_);
    words.insert(words.end(), flags_.begin(), flags_.end());
    std::vector<const char*> argv;
    for (auto& w : words) argv.push_back(w.c_str());
    return deft::task_main(static_cast<int>(argv.size()), argv.data(), body);
  }

  int ps_ = 0;
  std::vector<std::string> flags_;  ///< of every task, beside those
  std::string ps_hosts_, worker_hosts_;
  std::vector<int> fds_;
};

}  // namespace testing
