// SPDX-License-Identifier: Apache-2.0
// deft/session/launch/task.hpp: one program as client, parameter server and worker, by its flags.
#pragma once
#include <atomic>
#include <concepts>
#include <deft/session/cluster/cluster_spec.hpp>
#include <deft/session/options.hpp>
#include <deft/session/server/server.hpp>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace deft {

namespace ext {

class engine;
class task_signals;

}  // namespace ext

/// A flag of a program, without "--", and what it sets: `{"steps", "number of steps (1000)"}`.
struct program_flag {
  /// The name is without "--"; the meaning is printed by `--help`.
  /// @{
  std::string name, meaning;
  /// @}
};

/// What this process is in its cluster, according to its command line.
class task {
 public:
  /// Reads deft's flags, each as `--name value` or `--name=value`, and starts the server of the
  /// task. `--JOB_hosts` lists the tasks of a job of any name. Without --job_name this is a single
  /// process, without a server. Other arguments are kept
  /// in args(). `--help` prints all flags and ends the process.
  /// Where a program names its own flags, each of which takes a value, `--help` lists them, and no
  /// others may be given or read.
  /// Throws invalid_argument naming the flag that is wrong, with a suggestion if it is close to
  /// another, and as the constructor of server does.
  task(int argc, const char* const* argv, const std::vector<program_flag>& own = {});
  ~task();
  task(const task&) = delete;

  /// The cluster, with the ports that were chosen; empty in a single process.
  const cluster_spec& cluster() const { return cluster_; }
  /// The job, such as "ps" or "worker"; empty in a single process.
  const std::string& job() const { return job_; }
  /// The number of the task within its job, from 0.
  int index() const { return index_; }
  /// Whether this process is a task of a cluster, and so has a server.
  bool distributed() const { return server_ != nullptr; }
  /// Whether this is the chief of its cluster (see cluster_spec::chief) or a single process.
  bool is_chief() const;
  /// Whether this is a parameter server: a task of job "ps".
  bool is_ps() const { return job_ == "ps"; }
  /// The name of the task, such as "/job:worker/replica:0/task:0"; in a single process
  /// "/job:localhost/replica:0/task:0".
  std::string device() const;
  /// The value of `--data`; empty if it was not given.
  const std::string& data_dir() const { return data_; }
  /// Whether `--log_device_placement` was given.
  bool log_device_placement() const { return log_device_placement_; }
  /// The arguments on the command line other than deft's flags.
  const std::vector<std::string>& args() const;
  /// The value of `--name value` or `--name=value` among args; `otherwise` if it was not given.
  /// Throws invalid_argument if the flag has no value, or is not among the flags that the program
  /// named.
  std::string flag(const std::string& name, const std::string& otherwise = {}) const;
  /// As a number: `self.flag("steps", 1000)`. Throws invalid_argument if it is not one, or not in
  /// the range of T.
  template <class T>
  requires(std::integral<T> && !std::same_as<T, bool>) T flag(const std::string& name, T otherwise)
  const {
    using limits = std::numeric_limits<T>;
    const auto text = value_of(name);
    return text ? static_cast<T>(integer_in(name, *text, limits::min(), limits::max())) : otherwise;
  }
  /// As true or false, 1 or 0, yes or no, on or off: `self.flag("verbose", false)`. Throws
  /// invalid_argument if it is none of these.
  template <std::same_as<bool> T>
  T flag(const std::string& name, T otherwise) const {
    const auto text = value_of(name);
    return text ? truth_in(name, *text) : otherwise;
  }
  /// As a number, which may have a fraction: `self.flag("rate", 0.1)`. Throws invalid_argument if
  /// it is not one.
  template <std::floating_point T>
  T flag(const std::string& name, T otherwise) const {
    const auto text = value_of(name);
    return text ? static_cast<T>(number_in(name, *text)) : otherwise;
  }
  /// The arguments that are not flags which the program named, and that neither args() nor flag()
  /// has read yet.
  std::vector<std::string> unread() const;
  /// Calls `f`, on another thread, when SIGINT (Ctrl-C) or SIGTERM asks the process to end, instead
  /// of ending it, as long as the result lives. A second signal ends it at once.
  std::shared_ptr<void> when_asked_to_stop(std::function<void()> f);
  /// Notes that something has failed where nothing can be thrown, as a last checkpoint that a
  /// destructor could not save: task_main then returns 1, whatever else goes well.
  void note_failure() { failed_ = true; }
  /// Whether note_failure was called.
  bool has_failed() const { return failed_; }
  /// The server of this task. Throws failed_precondition in a single process.
  deft::server& server();

  /// The engine of a session on this task; sessions use it.
  std::shared_ptr<ext::engine> engine_for(const session_options& options);

 private:
  cluster_spec cluster_;
  std::string job_, data_;
  int index_ = 0;
  ext::device_settings device_settings_;
  bool log_device_placement_ = false;
  std::atomic<bool> failed_{false};
  std::optional<std::string> value_of(const std::string& name) const;
  static long long integer_in(const std::string& name, const std::string& text, long long lowest,
                              unsigned long long highest);
  static double number_in(const std::string& name, const std::string& text);
  static bool truth_in(const std::string& name, const std::string& text);

  std::vector<std::string> rest_;
  std::vector<program_flag> own_;  ///< empty where the program does not name them
  friend class ext::task_signals;
  ext::task_signals* signals_ = nullptr;  ///< while task_main runs
  mutable std::mutex guard_;
  mutable std::vector<bool> read_;  ///< of rest_
  std::unique_ptr<deft::server> server_;
};

/// The `main` of every task: reads the flags and starts the server. A parameter server then serves
/// until all workers are done; any other task is a worker: it calls `body` with a new graph as the
/// current one, and tells the others when it is done. A worker whose body is
/// `self.server().join()` serves until the other workers are done.
/// Returns the exit code: 0, or 1 after printing an error that was thrown, as by a parameter server
/// whose worker was lost and has not come back for `--lost_worker_timeout` seconds, or if a
/// monitored_session could not end in order, which it has logged. `--help` prints the flags and the
/// environment variables, and returns 0. SIGTERM or SIGINT (Ctrl-C) shuts a task of a cluster down:
/// it cancels its runs, tells the other tasks that it was stopped, and returns 128 plus the
/// signal's number. A parameter server, and a worker that serves, first waits for the last steps
/// and checkpoints of the workers that are connected, for half of `--grace` at most. A second
/// signal ends it at once.
int task_main(int argc, const char* const* argv, const std::function<void(task&)>& body);
/// The same for a program that names its own flags: see the constructor of task.
/// `task_main(argc, argv, {{"steps", "number of steps (1000)"}}, body)`.
int task_main(int argc, const char* const* argv, const std::vector<program_flag>& own,
              const std::function<void(task&)>& body);

/// As task_main if the command line has `--job_name`, `--single` or `--help`; otherwise starts the
/// whole cluster on this machine, each task a process of this program: see launch_cluster. `jobs`
/// are names and numbers of tasks: `cluster_main(argc, argv, {{"ps", 1}, {"worker", 2}}, body)`;
/// a job may have any name.
int cluster_main(int argc, const char* const* argv,
                 const std::vector<std::pair<std::string, int>>& jobs,
                 const std::function<void(task&)>& body);
/// The same for a program that names its own flags, which are checked before tasks are started:
/// `cluster_main(argc, argv, {{"worker", 2}}, {{"steps", "number of steps (1000)"}}, body)`.
int cluster_main(int argc, const char* const* argv,
                 const std::vector<std::pair<std::string, int>>& jobs,
                 const std::vector<program_flag>& own, const std::function<void(task&)>& body);

}  // namespace deft
