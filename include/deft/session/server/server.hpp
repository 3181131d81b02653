// SPDX-License-Identifier: Apache-2.0
// deft/session/server/server.hpp: a server, which runs one task of a cluster.
#pragma once
#include <deft/session/cluster/cluster_spec.hpp>
#include <deft/session/options.hpp>
#include <deft/transport/credit.hpp>
#include <memory>
#include <string>

namespace deft {

namespace ext {

class coordination;
class engine;
class server_impl;

}  // namespace ext

/// Options of a server; every member has a default.
struct server_options {
  int cpu_devices = 1;                          ///< number of CPU devices, 1 to 1024
  std::optional<int> simulated_gpus = {};       ///< as in session_options
  std::optional<bool> allow_tf32 = {};          ///< as in session_options
  std::optional<double> gpu_memory_limit = {};  ///< as in session_options
  ext::device_settings device_settings = {};    ///< as in session_options
  /// Directories below which sessions may let the task read and write files; no link below them is
  /// followed.
  std::vector<std::string> file_roots = {};
  /// A listening socket to adopt, from a launcher; -1: bind the task's address.
  int listen_fd = -1;
  deft::credentials credentials = {};  ///< the same secret and authority for all tasks
  /// A task or client from which nothing arrives for this long counts as lost; one that is only
  /// busy still sends heartbeats. Zero: no limit.
  std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(20);
  /// How many bytes and messages a peer may send for steps that have not begun, for each
  /// connection; the peer keeps the rest until they begin.
  ext::credit_window window = {};
  /// How long join waits for a worker that was lost, before it throws.
  std::chrono::nanoseconds away = std::chrono::minutes(2);
};

/// Serves a task of a cluster from construction until it is stopped. Its devices and variables
/// outlive the sessions on it.
///
///     server s(cluster, "ps", 0);
///     s.join();
class server {
 public:
  /// Starts task `task`, from 0, of job `job`. If the port in its address is 0, the system chooses
  /// one. Throws not_found if the cluster has no such task, unavailable if its address cannot be
  /// bound, permission_denied for an address other than loopback without a secret, TLS or
  /// `credentials.insecure`, and an error naming the file if one of the credentials' files is
  /// wrong.
  server(const cluster_spec& cluster, const std::string& job, int task,
         server_options options = {});
  /// As stop().
  ~server();
  /// @cond moves
  server(server&&) noexcept;
  /// @endcond

  /// A server that is a cluster of its own, on a loopback port that the system chooses.
  static server local(server_options options = {});

  /// The address for sessions, such as "deft://127.0.0.1:40123".
  std::string target() const;
  /// The address it listens at, such as "127.0.0.1:40123".
  const std::string& address() const;
  /// The cluster, with the port that was chosen for this task.
  const cluster_spec& cluster() const;
  /// The name of the task, such as "/job:ps/replica:0/task:0".
  std::string name() const;

  /// Waits until the server is stopped or interrupted, or the job is done. On a parameter server
  /// that is when every worker of the cluster has said that it is done; throws unavailable, naming
  /// those that were lost and have not come back for `server_options::away`. On a worker, which
  /// serves meanwhile, it is when every other worker is done or serves, and one is done; it throws
  /// likewise.
  void join();
  /// Ends what this process does on the task, as Ctrl-C does: closes its sessions, wakes join, and
  /// cancels waits for signals. Later sessions of this process throw cancelled. Connections stay
  /// open, so that other tasks can be told: see done and stop.
  void interrupt();
  /// Tells all connected processes that the task was stopped, closes every session and connection,
  /// and wakes join. `linger`: how long to wait for the others to close their connections first.
  void stop(std::chrono::nanoseconds linger = {});

  /// Tells the other tasks that this one no longer needs them; see coordination::done.
  void done();
  /// Signals between tasks, and their state: see deft/session/server/coordination.hpp.
  deft::ext::coordination& coordination();

 private:
  friend class task;
  std::unique_ptr<ext::server_impl> impl_;
};

}  // namespace deft
