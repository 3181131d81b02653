// SPDX-License-Identifier: Apache-2.0
// How many messages sessions on many tasks take.
#include <atomic>
#include <deft/session/launch/local_cluster.hpp>
#include <deft/transport/stream.hpp>

#include "session/sessions.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

/// While it lives, counts what is written to the new connections of this process: a message is one
/// write, unless it is large.
class write_counter {
 public:
  write_counter() {
    detail::filter_streams([n = writes_](std::unique_ptr<detail::stream> inner) {
      return std::make_unique<counted_stream>(std::move(inner), n);
    });
  }
  ~write_counter() { detail::filter_streams(nullptr); }
  write_counter(const write_counter&) = delete;
  /// Since the last call.
  int take() { return writes_->exchange(0); }

 private:
  using counter = std::shared_ptr<std::atomic<int>>;
  class counted_stream final : public detail::stream {
   public:
    counted_stream(std::unique_ptr<stream> inner, counter n)
        : inner_(std::move(inner)), writes_(std::move(n)) {}
    std::ptrdiff_t read(void* to, std::size_t most) noexcept override {
      return inner_->read(to, most);
    }
    std::ptrdiff_t write(const iovec* pieces, int count) noexcept override {
      const auto n = inner_->write(pieces, count);
      if (n > 0) ++*writes_;
      return n;
    }
    void wait(direction d, std::function<void()> then) override {
      inner_->wait(d, std::move(then));
    }
    bool has_unread() const noexcept override { return inner_->has_unread(); }
    void shut(bool both) noexcept override { inner_->shut(both); }
    bool shares_processor() const noexcept override { return inner_->shares_processor(); }
    std::string why(int failed) const override { return inner_->why(failed); }
    detail::event_loop& loop() const noexcept override { return inner_->loop(); }

   private:
    const std::unique_ptr<stream> inner_;
    const counter writes_;
  };
  const counter writes_ = std::make_shared<std::atomic<int>>(0);
};

struct messages {
  double first, later;  ///< of a session with its first step, and of a later step; for each task
};

/// For a step that fetches a scalar of each task.
messages of_tasks(int tasks) {
  write_counter written;
  graph own;
  auto in_own = as_default(own);
  local_cluster c{{"worker", tasks}};
  std::vector<any_tensor> scalars;
  for (int i = 0; i < tasks; ++i) {
    auto there = on(device(str("/job:worker/task:", i)));
    scalars.push_back(any_tensor(identity(constant(1.f))));
  }
  written.take();
  session s(c.target("worker", 0), {.fold = false});
  const auto step = s.prepare(scalars);
  step();
  const double first = written.take();
  constexpr int steps = 20;
  for (int i = 0; i < steps; ++i) step();
  return {first / tasks, static_cast<double>(written.take()) / steps / tasks};
}

}  // namespace

TEST_CASE("each task of a step takes a fixed number of messages, however many there are") {
  for (int tasks : {8, 64}) {
    CAPTURE(tasks);
    const messages m = of_tasks(tasks);
    CAPTURE(m.first);
    CAPTURE(m.later);
    // The handshake, the devices, the part, and the step; with their answers.
    CHECK(m.first <= 12);
    // An order and its answer; now and then a heartbeat.
    CHECK(m.later <= 2.1);
  }
}
