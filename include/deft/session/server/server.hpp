// SPDX-License-Identifier: Apache-2.0
// deft/session/server/server.hpp: one task of a cluster, as a server.
#pragma once
#include <deft/session/cluster/cluster_spec.hpp>
#include <deft/session/options.hpp>
#include <deft/transport/credit.hpp>
#include <memory>
#include <string>

namespace deft {

class coordination;
class engine;
class server_impl;

struct server_options {
  int cpu_devices = 1;
  std::optional<int> simulated_gpus = {};       ///< as session_options has them
  std::optional<bool> allow_tf32 = {};          ///< likewise
  std::optional<double> gpu_memory_limit = {};  ///< likewise
  int listen_fd = -1;  ///< a listening socket to adopt, from a launcher; -1: bind the own address
  deft::credentials credentials = {};  ///< the same of all tasks
  /// Another task or a client of which nothing comes for so long is lost; heartbeats come from one
  /// that is only busy. Zero: never.
  std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(20);
  /// How much others may have on the way to it for steps that have not begun, on each connection;
  /// the rest waits with them.
  credit_window window = {};
  /// How long a worker may be away before it counts as done.
  std::chrono::nanoseconds away = std::chrono::seconds(10);
};

/// Serves from construction until stopped. Its devices and variables outlive the sessions on it.
class server {
 public:
  /// Task number `task` of job `job`. A port 0 in its own address is chosen by the system.
  /// Throws not_found if the cluster has no such task, unavailable if its address cannot be bound,
  /// permission_denied for an open address without a secret or TLS, and what is wrong with the
  /// credentials' files for TLS, by name.
  server(const cluster_spec& cluster, const std::string& job, int task,
         server_options options = {});
  /// Stops.
  ~server();
  server(server&&) noexcept;

  /// A cluster of one, on loopback.
  static server local(server_options options = {});

  /// "deft://127.0.0.1:40123": what sessions take.
  std::string target() const;
  /// "127.0.0.1:40123".
  const std::string& address() const;
  /// With the ports that were chosen.
  const cluster_spec& cluster() const;
  /// "/job:ps/replica:0/task:0".
  std::string name() const;

  /// A parameter server returns once every worker of the cluster was seen and is done; the others
  /// when stopped. All return when interrupted.
  void join();
  /// Ends what this process does on the task, as Ctrl-C does: closes its sessions, wakes join, and
  /// cancels waits for signals. Connections stay, so that the others can be told: see done and
  /// stop. Nothing can be run afterwards.
  void interrupt();
  /// Tells those that are connected that it was stopped, ends every connection and session, and
  /// wakes join. `linger`: how long it waits for them to have heard it.
  void stop(std::chrono::nanoseconds linger = {});

  /// Tells the parameter servers that this task needs them no more.
  void done();
  /// Signals between the tasks of a job: session/server/coordination.hpp.
  deft::coordination& coordination();

 private:
  friend class task;
  std::unique_ptr<server_impl> impl_;
};

}  // namespace deft
