// SPDX-License-Identifier: Apache-2.0
// tests/soak/task.cpp: a task of the soak test. A worker increments variables until it is told to
// stop, and counts what it has tried and what was acknowledged.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "board.hpp"
#include "jobs.hpp"
#include "session/mutate.hpp"

using namespace deft;
using namespace deft::ext;
using namespace std::chrono_literals;

namespace soak {
namespace {

/// Far more than a task is ever away, so that only a step that hangs reaches it.
constexpr auto step_timeout = 60s;
constexpr int steps_of_a_session = 400;

class worker_loop {
 public:
  explicit worker_loop(task& self)
      : self_(self),
        board_(board::map(board_fd)),
        mine_(board_.of_worker[static_cast<std::size_t>(self.index())]),
        dice_(std::strtoull(self.flag("seed").c_str(), nullptr, 10)),
        kinds_(self.flag("steps") == "direct" ? 4 : 6),
        variables_(self.index()),
        common_(common_variables()),
        elements_(on(device(server_device(self.index() % servers)),
                     [] { return placeholder<float, large>("ones"); })),
        ones_(large, 1.f) {
    for (int p = 0; p < servers; ++p) {
      // A literal would be one node for all of them, whose value one sends to the other.
      auto there = on(device(server_device(p)));
      fed_at_.emplace_back(str("one_", p));
    }
    for (std::size_t p = 0; p < servers; ++p) {
      add_own_.push_back(variables_.own[p].assign_add(fed_at_[p]));
      add_all_.push_back(common_[p].assign_add(fed_at_[p]));
    }
    // Values that go from one parameter server to the other, and through another worker.
    tensor<std::int64_t> one;
    if (auto there = on(device(server_device(0)))) one = variables_.own[0] * 0 + 1;
    through_server_.push_back(variables_.own[1].assign_add(one));
    if (auto there = on(device(worker_device((self.index() + 1) % workers)))) one = fed_ * 1;
    through_worker_.push_back(variables_.own[0].assign_add(one));
    add_elements_.push_back(variables_.elements.assign_add(elements_));
  }

  void run() {
    while (!board_.stop) {
      try {
        session s(self_, {.timeout = step_timeout});
        ++mine_.sessions;
        for (int i = 0; i < steps_of_a_session && !board_.stop; ++i) {
          wait_while_paused();
          step(s);
        }
      } catch (const error& e) {
        // Lost tasks; any other error ends this worker, and so fails the test.
        if (e.code() != errc::unavailable && e.code() != errc::aborted) throw;
        ++mine_.failures;
      }
    }
  }

 private:
  void wait_while_paused() {
    while (const std::uint32_t number = board_.pause) {
      mine_.paused = number;
      std::this_thread::sleep_for(1ms);
      if (board_.stop) return;
    }
  }

  void step(session& s) {
    count *const own = mine_.own.data(), *const all = mine_.all.data();
    constexpr std::int64_t one = 1;
    switch (dice_.below(kinds_)) {
      case 0:
        return counted({&own[0], &all[0]},
                       [&] { s.run(add_own_[0], add_all_[0], fed_at_[0] = one); });
      case 1:
        return counted({&own[1], &all[1]},
                       [&] { s.run(add_own_[1], add_all_[1], fed_at_[1] = one); });
      case 2:
        return counted({&own[0], &own[1], &all[0], &all[1]}, [&] {
          s.run(add_own_[0], add_own_[1].value(), add_all_[0].value(), add_all_[1],
                fed_at_[0] = one, fed_at_[1] = one);
        });
      case 3:
        return counted({&mine_.elements}, [&] { s.run(add_elements_[0], elements_ = ones_); });
      case 4:
        return counted({&own[1]}, [&] { s.run(through_server_[0]); });
      default:
        return counted({&own[0]}, [&] { s.run(through_worker_[0], fed_ = one); });
    }
  }

  template <class F>
  void counted(std::initializer_list<count*> counts, F&& run) {
    for (count* c : counts) ++c->tried;
    const auto begin = std::chrono::steady_clock::now();
    try {
      run();
    } catch (const error& e) {
      // A task may be away for longer than another one tries to reach it.
      const bool unreached = e.code() == errc::deadline_exceeded &&
                             std::chrono::steady_clock::now() - begin < step_timeout / 2;
      if (e.code() != errc::unavailable && !unreached) throw;
      ++mine_.failures;
      return;  // the session goes on
    }
    for (count* c : counts) ++c->acknowledged;
    ++mine_.steps;
  }

  using counter_update = assigned<tensor<std::int64_t>>;
  task& self_;
  board& board_;
  worker_board& mine_;
  testing::dice dice_;
  const std::size_t kinds_;  ///< of steps; the last two send values past this worker
  worker_variables variables_;
  std::vector<variable<std::int64_t>> common_;
  placeholder<std::int64_t> fed_{"one"};
  std::vector<placeholder<std::int64_t>> fed_at_;
  placeholder<float, large> elements_;
  std::vector<float> ones_;
  std::vector<counter_update> add_own_, add_all_, through_server_, through_worker_;
  std::vector<assigned<tensor<float, large>>> add_elements_;
};

}  // namespace

int run_task(int argc, const char* const* argv) {
  // None outlives the driver.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == 1) return 1;
  return task_main(argc, argv, [](deft::task& self) {
    if (const std::string folder = self.flag("trains"); !folder.empty())
      train_job(self, folder);
    else if (!self.flag("serves").empty())
      self.server().join();
    else
      worker_loop(self).run();
  });
}

}  // namespace soak
