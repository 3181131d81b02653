// SPDX-License-Identifier: Apache-2.0
// 08_pi_server.cpp: servers without a model: they run the graphs of clients, such as 08_pi_client.
//
//     08_pi_client ── graph, fetches ──▶ /job:worker/task:0 ── its part ──▶ /job:worker/task:1
//                  ◀────── values ──────                    ◀── values ───
//
// Without flags it starts both tasks on this machine, prints their addresses, and serves until
// Ctrl-C. By hand, each task is a process with the same list of hosts:
//
//     08_pi_server --job_name=worker --task_index=0 --worker_hosts=localhost:2222,localhost:2223
//     08_pi_server --job_name=worker --task_index=1 --worker_hosts=localhost:2222,localhost:2223
#include <deft/deft.hpp>

int main(int argc, char** argv) {
  return deft::cluster_main(argc, argv, {{"worker", 2}},
                            [](deft::task& self) { self.server().join(); });
}
