// SPDX-License-Identifier: Apache-2.0
// tests/session/together.hpp: tasks that answer calls only once all of them were called.
#pragma once
#include <deft/session/launch/local_cluster.hpp>
#include <deft/session/wire/dispatch.hpp>
#include <deft/transport/listener.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "session/sessions.hpp"

namespace testing {

/// Tasks of `job`, next to a real server, worker 0 of the same cluster. A caller that waits for one
/// answer before it calls the next task gets none.
class answering_together {
 public:
  answering_together(const std::string& job, int tasks) {
    std::vector<int> sockets;
    std::vector<std::string> addresses;
    for (int i = 0; i <= tasks; ++i) {
      sockets.push_back(deft::ext::listen_socket("localhost:0"));
      addresses.push_back(deft::ext::address_of_socket(sockets.back()));
    }
    const bool of_workers = job == "worker";
    const std::vector<std::string> others(addresses.begin() + 1, addresses.end());
    const deft::cluster_spec spec =
        of_workers ? deft::cluster_spec{{"worker", addresses}}
                   : deft::cluster_spec{{job, others}, {"worker", {addresses[0]}}};
    chorus_.wanted = static_cast<std::size_t>(tasks);
    for (int i = 0; i < tasks; ++i) {
      deft::ext::listen_options o;
      o.fd = sockets[static_cast<std::size_t>(i) + 1];
      o.self.name = to_string(deft::task_name(job, i + of_workers));
      o.self.cluster = spec.entries();
      o.self.credentials = deft::credentials::of_environment();
      tasks_.push_back(std::make_unique<deft::ext::listener>(o, chorus_));
    }
    here_ = std::make_unique<deft::server>(spec, "worker", 0,
                                           deft::server_options{.listen_fd = sockets[0]});
  }
  ~answering_together() { here_.reset(); }

  deft::server& here() { return *here_; }

 private:
  struct handler : deft::ext::connection_handler {
    void on_message(const std::shared_ptr<deft::ext::connection>& from,
                    deft::ext::message&& m) override {
      if (m.id == 0) return;
      std::lock_guard lock(guard);
      const bool devices =
          m.kind == static_cast<deft::ext::message_kind>(deft::ext::wire::devices::number);
      asked.emplace_back(from, m.id);
      if (asked.size() < wanted) return;
      for (const auto& c : asked)
        devices ? c.answer(deft::ext::wire::device_list()) : c.answer(deft::ext::wire::nothing());
      asked.clear();
    }
    std::mutex guard;
    std::size_t wanted = 0;
    std::vector<deft::ext::wire::caller> asked;
  };

  handler chorus_;
  std::vector<std::unique_ptr<deft::ext::listener>> tasks_;
  std::unique_ptr<deft::server> here_;
};

}  // namespace testing
