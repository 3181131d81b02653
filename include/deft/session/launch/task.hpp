// SPDX-License-Identifier: Apache-2.0
// deft/session/launch/task.hpp: one binary for client, parameter server and worker.
#pragma once
#include <deft/session/cluster/cluster_spec.hpp>
#include <deft/session/options.hpp>
#include <deft/session/server/server.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace deft {

class engine;

/// What a process is in its cluster, from its command line.
class task {
 public:
  /// Reads deft's flags (`--help` lists them), each as `--name value` or `--name=value`, and
  /// starts the server. Without a job it is a single process, without a server.
  /// Throws invalid_argument naming the flag that is wrong.
  task(int argc, const char* const* argv);
  ~task();
  task(const task&) = delete;

  const cluster_spec& cluster() const { return cluster_; }
  const std::string& job() const { return job_; }
  int index() const { return index_; }
  bool distributed() const { return server_ != nullptr; }
  /// Worker 0, or the only process.
  bool is_chief() const { return !distributed() || (job_ == "worker" && index_ == 0); }
  bool is_ps() const { return job_ == "ps"; }
  /// "/job:worker/replica:0/task:0"; of a single process "/job:localhost/replica:0/task:0".
  std::string device() const;
  /// As `--data` says; empty if it does not.
  const std::string& data_dir() const { return data_; }
  bool log_device_placement() const { return log_device_placement_; }
  /// What was on the command line beside deft's flags.
  const std::vector<std::string>& args() const { return rest_; }
  /// Value of `--name value` among args; `otherwise` if it is not there.
  std::string flag(const std::string& name, const std::string& otherwise = {}) const;
  /// Throws invalid_argument naming the first argument beside deft's flags that is none of `known`
  /// with its value.
  void expect_flags(std::initializer_list<std::string_view> known) const;
  /// Throws failed_precondition in a single process.
  deft::server& server();

  std::shared_ptr<engine> engine_for(const session_options& options);

 private:
  cluster_spec cluster_;
  std::string job_, data_;
  int index_ = 0;
  int cpu_devices_ = 1;
  std::optional<int> simulated_gpus_;
  std::optional<bool> allow_tf32_;
  std::optional<double> gpu_memory_limit_;
  bool log_device_placement_ = false;
  std::vector<std::string> rest_;
  std::unique_ptr<deft::server> server_;
};

/// The `main` of every task: reads the flags, starts the server, joins it if this is a parameter
/// server, else calls `body` in a fresh graph; then says to the others that this task is done.
/// Errors are printed, and give 1; `--help` prints the flags and the environment variables, and
/// gives 0. SIGTERM or SIGINT (Ctrl-C) ends a task in order: what runs is cancelled, a worker says
/// to the others that it is done, a parameter server that it was stopped, and the exit code is 128
/// and the signal's number. A second signal ends it at once.
int task_main(int argc, const char* const* argv, const std::function<void(task&)>& body);

/// As task_main where the command line names a job, or says `--single`; else starts the whole
/// cluster on this machine, each task a process of this program: see launch_cluster.
int cluster_main(int argc, const char* const* argv,
                 const std::vector<std::pair<std::string, int>>& jobs,
                 const std::function<void(task&)>& body);

}  // namespace deft
