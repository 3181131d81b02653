// SPDX-License-Identifier: Apache-2.0
// deft/session/worker.ipp: running steps and their rendezvous.
#pragma once
#include <deft/core/log.hpp>
#include <deft/session/protocol.hpp>
#include <deft/session/worker.hpp>
#include <deque>

namespace deft {

/// One step of one part: its frame, and the values that have arrived for it.
class running_step final : public step_io, public std::enable_shared_from_this<running_step> {
 public:
  running_step(worker& w, std::uint64_t session, std::uint64_t step)
      : worker_(w), session_(session), step_(step) {}

  void begin(std::shared_ptr<frame_pool> pool, std::vector<feed_ref> feeds, step_callback done) {
    {
      std::lock_guard lock(guard_);
      pool_ = std::move(pool);
      done_ = std::move(done);
      feeds_ = std::move(feeds);
      auto receives = pool_->code().receives();
      for (std::size_t i = 0; i < receives.size(); ++i) numbers_.emplace(receives[i].key, i);
      arrived_.resize(receives.size());
      for (auto& [key, value] : early_) {
        auto at = numbers_.find(key);
        if (at != numbers_.end()) arrived_[at->second] = std::move(value);
      }
      early_.clear();
      early_bytes_ = 0;
      if (cancelled_) return finish_locked_out();
    }
    go([&] {
      frame_ = pool_->take();
      return frame_->start(feeds_, {step_}, this, &cancelled_);
    });
  }

  /// Without a part to run: the error of its registration.
  void refuse(const error& e, step_callback done) {
    done_ = std::move(done);
    finish(std::make_shared<const error>(e));
  }

  void deliver(std::uint64_t key, any_array value) {
    {
      std::lock_guard lock(guard_);
      if (!pool_) {
        early_bytes_ += value.bytes();
        if (early_.size() >= most_early || early_bytes_ > most_early_bytes)
          fail(errc::resource_exhausted, "too many values came before step ", step_, " began");
        early_.emplace_back(key, std::move(value));
        return;
      }
      auto at = numbers_.find(key);
      if (at == numbers_.end()) return logging::warning("a value came that no receive waits for");
      arrived_[at->second] = std::move(value);
      if (parked_on_ != at->second) return;
      parked_on_ = nowhere;
    }
    go([&] { return frame_->resume(); });
  }

  void cancel() {
    {
      std::lock_guard lock(guard_);
      cancelled_ = true;
      if (!pool_ || parked_on_ == nowhere) return;  // it sees the flag, or is not there yet
      parked_on_ = nowhere;
    }
    finish(std::make_shared<const error>(errc::cancelled, "the step was cancelled"));
  }

  void send(std::size_t number, const any_array& value) override {
    const crossing& c = pool_->code().sends()[number];
    message m = make_message(request::tensor, session_, step_);
    m.flags = static_cast<std::uint32_t>(c.key);
    m.tensors.push_back(value);
    worker_.link(*c.peer, deadline_in(std::chrono::seconds(10)))->post(m);
  }

  bool receive(std::size_t number, any_array& value) override {
    std::lock_guard lock(guard_);
    if (cancelled_) throw error(errc::cancelled, "the step was cancelled");
    if (!arrived_[number].valid()) {
      parked_on_ = number;
      return false;
    }
    value = std::move(arrived_[number]);
    arrived_[number] = any_array();
    return true;
  }

 private:
  static constexpr std::size_t nowhere = ~std::size_t{0};
  static constexpr std::size_t most_early = 65'536;
  static constexpr std::size_t most_early_bytes = std::size_t{4} << 30;

  /// Runs on; nothing of this may be touched after the part has parked: another thread has it.
  template <class F>
  void go(F run) {
    std::shared_ptr<const error> failure;
    auto self = shared_from_this();
    try {
      if (!run()) return;
    } catch (const error& e) {
      failure = std::make_shared<const error>(e);
    }
    finish(std::move(failure));
  }

  void finish_locked_out() {
    // Called with the lock held, before anything ran.
    auto done = std::move(done_);
    auto self = shared_from_this();
    worker_.ended(session_, step_);
    done(
        {nullptr, pool_, std::make_shared<const error>(errc::cancelled, "the step was cancelled")});
  }

  void finish(std::shared_ptr<const error> failure) {
    auto self = shared_from_this();
    worker_.ended(session_, step_);
    step_outcome o;
    o.pool = pool_;
    if (failure) {
      if (frame_) pool_->give_back(std::move(frame_));
      o.failure = std::move(failure);
    } else {
      o.frame = std::move(frame_);
    }
    auto done = std::move(done_);
    done(std::move(o));
  }

  worker& worker_;
  const std::uint64_t session_, step_;
  std::mutex guard_;
  std::shared_ptr<frame_pool> pool_;  ///< null until the step begins
  std::unique_ptr<executable::frame> frame_;
  std::vector<feed_ref> feeds_;
  step_callback done_;
  std::vector<any_array> arrived_;
  std::unordered_map<std::uint64_t, std::size_t> numbers_;
  std::vector<std::pair<std::uint64_t, any_array>> early_;
  std::size_t early_bytes_ = 0;
  std::size_t parked_on_ = nowhere;
  std::atomic<bool> cancelled_{false};
};

struct worker::session_entry {
  struct part_entry {
    std::shared_ptr<frame_pool> pool;
    std::shared_ptr<const error> failure;
  };
  std::mutex guard;
  const void* owner = nullptr;
  std::unordered_map<std::uint64_t, part_entry> parts;
  std::unordered_map<std::uint64_t, std::shared_ptr<running_step>> steps;
  std::deque<std::uint64_t> ended;  ///< what still comes for these is dropped
};

worker::worker(std::shared_ptr<task_runtime> task, cluster_spec cluster, process_identity self)
    : task_(std::move(task)),
      cluster_(std::move(cluster)),
      hub_(hub_options{std::move(self), {}}) {}

worker::~worker() {
  std::vector<std::uint64_t> all;
  {
    std::lock_guard lock(guard_);
    for (const auto& [id, s] : sessions_) all.push_back(id);
  }
  for (auto id : all) drop_session(id);
}

std::shared_ptr<channel> worker::link(const device_name& task, deadline until) {
  const device_name* name = intern(task);
  std::shared_ptr<peer_link> peer;
  {
    std::lock_guard lock(links_guard_);
    auto& entry = links_[name];
    if (!entry) entry = std::make_shared<peer_link>();
    peer = entry;
  }
  std::lock_guard lock(peer->guard);
  if (!peer->channel || peer->channel->lost())
    peer->channel = hub_.connect(cluster_.address(task.job, *task.task), until);
  return peer->channel;
}

std::shared_ptr<worker::session_entry> worker::find(std::uint64_t session, bool make) {
  std::lock_guard lock(guard_);
  auto at = sessions_.find(session);
  if (at != sessions_.end()) return at->second;
  if (!make) return nullptr;
  return sessions_.emplace(session, std::make_shared<session_entry>()).first->second;
}

void worker::register_part(std::uint64_t session, std::uint64_t handle, plan::part p,
                           const void* owner) {
  session_entry::part_entry made;
  try {
    check(p.graph);
    for (const auto& f : p.fetches)
      if (f.node >= p.graph.nodes.size() || (f.port >= p.graph.nodes[f.node].outputs.size() &&
                                             !p.graph.nodes[f.node].outputs.empty()))
        fail(errc::invalid_argument, "a fetch of a value that is not there");
    made.pool = std::make_shared<frame_pool>(std::move(p), task_->resources());
  } catch (const error& e) {
    made.failure = std::make_shared<const error>(e);
  }
  auto s = find(session, true);
  std::lock_guard lock(s->guard);
  s->owner = owner;
  s->parts[handle] = std::move(made);
}

void worker::drop_part(std::uint64_t session, std::uint64_t handle) {
  if (auto s = find(session, false)) {
    std::lock_guard lock(s->guard);
    s->parts.erase(handle);
  }
}

void worker::drop_session(std::uint64_t session) {
  std::shared_ptr<session_entry> s;
  {
    std::lock_guard lock(guard_);
    auto at = sessions_.find(session);
    if (at == sessions_.end()) return;
    s = std::move(at->second);
    sessions_.erase(at);
  }
  std::vector<std::shared_ptr<running_step>> steps;
  {
    std::lock_guard lock(s->guard);
    for (auto& [number, step] : s->steps) steps.push_back(step);
  }
  for (auto& step : steps) step->cancel();
}

void worker::drop_owner(const void* owner) {
  std::vector<std::uint64_t> gone;
  {
    std::lock_guard lock(guard_);
    for (const auto& [id, s] : sessions_)
      if (s->owner == owner) gone.push_back(id);
  }
  for (auto id : gone) drop_session(id);
}

void worker::ended(std::uint64_t session, std::uint64_t step) {
  constexpr std::size_t remembered = 1024;
  auto s = find(session, false);
  if (!s) return;
  std::shared_ptr<running_step> last;  // destroyed without the lock
  std::lock_guard lock(s->guard);
  auto at = s->steps.find(step);
  if (at == s->steps.end()) return;
  last = std::move(at->second);
  s->steps.erase(at);
  s->ended.push_back(step);
  if (s->ended.size() > remembered) s->ended.pop_front();
}

void worker::run_part(std::uint64_t session, std::uint64_t step, std::uint64_t handle,
                      std::vector<feed_ref> feeds, step_callback done) {
  auto s = find(session, true);
  std::shared_ptr<running_step> running;
  session_entry::part_entry part;
  {
    std::lock_guard lock(s->guard);
    auto& entry = s->steps[step];
    if (!entry) entry = std::make_shared<running_step>(*this, session, step);
    running = entry;
    auto at = s->parts.find(handle);
    if (at != s->parts.end()) part = at->second;
  }
  if (part.pool && part.pool->code().feeds().size() != feeds.size())
    return running->refuse(
        error(errc::invalid_argument,
              str("a step has ", feeds.size(), " feeds, not ", part.pool->code().feeds().size())),
        std::move(done));
  if (part.failure) return running->refuse(*part.failure, std::move(done));
  if (!part.pool)
    return running->refuse(
        error(errc::not_found, str("there is no part ", handle, " of this session")),
        std::move(done));
  running->begin(std::move(part.pool), std::move(feeds), std::move(done));
}

void worker::deliver(std::uint64_t session, std::uint64_t step, std::uint64_t key,
                     any_array value) {
  auto s = find(session, true);
  std::shared_ptr<running_step> running;
  {
    std::lock_guard lock(s->guard);
    auto at = s->steps.find(step);
    if (at != s->steps.end()) {
      running = at->second;
    } else {
      for (auto e : s->ended)
        if (e == step) return;
      running = s->steps[step] = std::make_shared<running_step>(*this, session, step);
    }
  }
  running->deliver(key, std::move(value));
}

void worker::cancel(std::uint64_t session, std::uint64_t step) {
  auto s = find(session, false);
  if (!s) return;
  std::shared_ptr<running_step> running;
  {
    std::lock_guard lock(s->guard);
    auto at = s->steps.find(step);
    if (at == s->steps.end()) return;
    running = at->second;
  }
  running->cancel();
}

}  // namespace deft
