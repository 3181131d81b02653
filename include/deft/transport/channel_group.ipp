// SPDX-License-Identifier: Apache-2.0
// deft/transport/channel_group.ipp: leader and followers over outbound channels.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <deft/core/duration.hpp>
#include <deft/core/failure.hpp>
#include <deft/transport/channel_group.hpp>
#include <deft/transport/channel_state.hpp>
#include <deft/transport/dialer.hpp>
#include <deft/transport/serving_threads.hpp>
#include <mutex>
#include <optional>
#include <thread>

namespace deft::ext {}  // namespace deft::ext

namespace deft::detail {

namespace {
// A leader polls up to this many channels; with more, it relies on events.
constexpr std::size_t looked_at = 4;
}  // namespace

class channel_group_state : public std::enable_shared_from_this<channel_group_state> {
 public:
  explicit channel_group_state(channel_options o)
      : options(std::make_shared<const channel_options>(std::move(o))),
        tls(make_tls_context(options->self.credentials, options->self.name)) {}

  void add(std::shared_ptr<channel_state> c) {
    c->connection->on_event([group = weak_from_this(), weak = std::weak_ptr(c)] {
      const auto channel = weak.lock();
      const auto h = group.lock();
      if (channel && h) h->on_event(*channel);
    });
    {
      std::lock_guard lock(guard_);
      channels_.push_back(std::move(c));
      ++version_;
    }
    notify();
  }
  void remove(const channel_state* c) {
    {
      std::lock_guard lock(guard_);
      std::erase_if(channels_, [&](const auto& i) { return i.get() == c; });
      ++version_;
    }
    notify();
  }
  std::vector<std::shared_ptr<channel_state>> channels() const {
    std::lock_guard lock(guard_);
    return channels_;
  }

  /// All waiting threads check again.
  void notify() {
    note_answer();
    wake_leader();
    if (readers_.load() == 0) return;
    { std::lock_guard lock(guard_); }
    unled_.notify_all();
  }
  /// Called by the thread that reads: an answer that a thread may wait for is there.
  void note_answer() {
    epoch_.fetch_add(1);
    if (followers_.load() == 0) return;
    { std::lock_guard lock(guard_); }  // they are either asleep or yet to look
    turn_.notify_all();                // without the lock, for which they would wait again
  }

  /// Called before a call: other threads may spin until it is done.
  void note_spinning() {
    crowded_until_.store(arrival_wait::crowded_until(spinning_for_this::now()),
                         std::memory_order_relaxed);
  }

  bool wait(bool (*ready)(void*), void* context, deadline until) {
    for (;;) {
      auto seen = epoch_.load();
      if (ready(context)) return leave(true);
      std::unique_lock lock(guard_);
      if (epoch_.load() != seen) continue;
      if (!led_) {
        led_ = true;
        lock.unlock();
        const lead_end at_end(*this);
        return lead(ready, context, until);
      }
      if (reads_for_others_ && !wanted_ && until != deadline{}) {
        wanted_ = true;
        lock.unlock();
        notify();
        continue;
      }
      ++followers_;
      // A thread that distributes an answer from here on sees a follower, and waits for the lock.
      auto turn = [&] { return epoch_.load() != seen || !led_; };
      bool in_time = true;
      {
        lock.unlock();
        const serving_threads::blocking_region while_waiting;
        lock.lock();
        if (until == no_deadline)
          turn_.wait(lock, turn);
        else
          in_time = turn_.wait_until(lock, until, turn);
        --followers_;
        lock.unlock();
      }
      if (!in_time) return leave(ready(context));
    }
  }

  bool serve(bool (*ready)(void*), void* context, std::chrono::microseconds unseen) {
    std::unique_lock lock(guard_);
    if (reads_for_others_) {  // the reader gives up the lead; wait for that
      lock.unlock();
      return wait(ready, context, no_deadline);
    }
    if (led_) return false;
    led_ = true;
    lock.unlock();
    const lead_end at_end(*this);
    return lead(ready, context, no_deadline, unseen);
  }

  /// Leads unless threads wait for themselves: one that waits again and again had better lead
  /// itself than have another one give up the lead each time. Then this one sleeps until something
  /// comes that none of them has waited for, see on_event.
  bool read(bool (*ready)(void*), void* context, deadline until) {
    struct reader {
      channel_group_state& h;
      bool (*ready)(void*);
      void* context;
      bool is_ready = false;
      static bool over(void* self) {
        auto& r = *static_cast<reader*>(self);
        r.is_ready = r.ready(r.context);
        return r.is_ready || r.h.wanted_.load();
      }
    } self{*this, ready, context};
    const serving_threads::blocking_region while_waiting;
    for (;;) {
      const auto seen = epoch_.load();
      if (ready(context)) return true;
      std::unique_lock lock(guard_);
      if (led_ || followers_.load() > 0 || std::exchange(waited_for_, false)) {
        ++readers_;
        const bool in_time =
            epoch_.load() != seen || unled_.wait_until(lock, until) == std::cv_status::no_timeout;
        --readers_;
        if (in_time) continue;
        lock.unlock();
        return ready(context);
      }
      led_ = reads_for_others_ = true;
      lock.unlock();
      const lead_end at_end(*this);
      const bool over = lead(&reader::over, &self, until);
      if (!over || self.is_ready) return over;
    }
  }

  const std::shared_ptr<const channel_options> options;
  const std::shared_ptr<const tls_context> tls;  ///< null without TLS

 private:
  struct lead_end {
    channel_group_state& h;
    explicit lead_end(channel_group_state& led) : h(led) {}
    lead_end(const lead_end&) = delete;
    ~lead_end() {
      {
        std::lock_guard lock(h.guard_);
        h.waited_for_ |= !h.reads_for_others_ || h.wanted_.load();
        h.led_ = h.reads_for_others_ = h.wanted_ = false;
        if (h.followers_.load() == 0) return;
      }
      h.turn_.notify_one();
    }
  };

  /// A follower that leaves may have been the one woken to take the lead.
  bool leave(bool result) {
    if (followers_.load() > 0) {
      std::lock_guard lock(guard_);
      if (!led_) turn_.notify_one();
    }
    return result;
  }

  /// After a new epoch.
  void wake_leader() {
    if (asleep_.load()) loop_.wake(sleeper_);
  }

  /// Called by a thread of the loop: there may be something to read on `c`.
  void on_event(channel_state& c) {
    c.told = true;
    {
      std::lock_guard lock(guard_);
      notified_ = true;
      if (led_) {
        epoch_.fetch_add(1);
        return wake_leader();
      }
      // No thread has led since the last time that something came: another one may from here on.
      if (readers_.load() > 0 && !std::exchange(waited_for_, false)) unled_.notify_one();
    }
    // No thread waits.
    while (c.pump() == channel_state::pumped::some) continue;
    if (c.gone()) return remove(&c);
    c.connection->arm();
  }

  bool lead(bool (*ready)(void*), void* context, deadline until,
            std::chrono::microseconds unseen = {}) {
    event_loop::polling_scope here(loop_);
    const deadline seen_from = unseen.count() ? deadline_in(unseen) : deadline();
    std::optional<serving_threads::blocking_region> blocked;
    wait_.restart();
    notified_ = true;
    for (unsigned turn = 1;; ++turn) {
      auto seen = epoch_.load();
      if (version_.load() != known_version_) refresh_channels();
      bool some = false;
      const bool few = known_.size() <= looked_at;
      if (few || notified_.exchange(false))
        for (std::size_t i = 0; i < known_.size(); ++i) {
          auto& c = *known_[i];
          if (!few && !c.told.exchange(false)) continue;
          const auto pumped = c.pump();
          if (!few) c.connection->arm();
          if (pumped == channel_state::pumped::part)
            wait_.on_partial_arrival(c.connection->source());
          if (pumped != channel_state::pumped::some) continue;
          if (c.told) notified_ = true;
          if (!some) wait_.on_arrival(c.connection->source());
          some = true;
          if (c.gone()) remove(&c);
        }
      if (ready(context)) return true;
      if (!few || turn % 64 == 0) loop_.poll();
      if (some || (!few && notified_.load())) continue;
      const auto now = std::chrono::steady_clock::now();
      if (now >= until) return false;
      wait_.set_crowded_until(crowded_until_.load(std::memory_order_relaxed));
      if (wait_.look_again(now)) continue;
      asleep_.store(true);
      if (epoch_.load() == seen) {
        if (!blocked && now >= seen_from) blocked.emplace();
        loop_.sleep(sleeper_, blocked ? until : std::min(until, seen_from));
      }
      asleep_.store(false);
      wait_.woke();
    }
  }

  void refresh_channels() {
    std::lock_guard lock(guard_);
    known_ = channels_;
    known_version_ = version_.load();
    notified_ = true;
    for (const auto& c : known_) c->told = true;
  }

  event_loop& loop_ = event_loop::of_callers();
  event_loop::sleeper sleeper_;  ///< of the leader
  mutable std::mutex guard_;
  std::condition_variable turn_;   ///< of followers
  std::condition_variable unled_;  ///< of threads that would read for others
  std::vector<std::shared_ptr<channel_state>> channels_;
  std::atomic<std::uint64_t> version_{1};
  std::atomic<std::uint64_t> epoch_{0};
  std::atomic<int> followers_{0};
  std::atomic<int> readers_{0};  ///< asleep, as other threads wait for themselves
  std::atomic<bool> asleep_{false}, notified_{true};
  bool led_ = false;
  bool reads_for_others_ = false;  ///< the leader reads for others, in read()
  bool waited_for_ = false;        ///< a thread has waited for itself since something came unled
  std::atomic<arrival_wait::clock::time_point> crowded_until_{};  ///< see arrival_wait
  std::atomic<bool> wanted_{false};  ///< the reader should give up the lead

  // Used by the leader only.
  std::vector<std::shared_ptr<channel_state>> known_;
  std::uint64_t known_version_ = 0;
  arrival_wait wait_{most_spin};
};

}  // namespace deft::detail

namespace deft::ext {

channel::~channel() { close(); }
void channel::post(const message& m) { state_->post(m); }
std::shared_ptr<pending> channel::call(message& m, std::shared_ptr<answer_listener> listener) {
  if (const auto h = state_->owner.lock()) h->note_spinning();
  return state_->call(m, std::move(listener));
}
void channel::abandon(const pending& p) { state_->abandon(p.id()); }
bool channel::drain(deadline until) { return state_->connection->drain(until); }
void channel::copy_borrowed() {
  if (failure_of([&] { state_->connection->copy_borrowed(); })) close();
}
void channel::close() {
  state_->connection->on_event(nullptr);
  state_->connection->close();
  state_->fail_all(make_failure(errc::cancelled, "the channel to ", peer(), " was closed"));
  if (auto h = state_->owner.lock()) h->remove(state_.get());
}
void channel::notice_loss() { state_->notice_loss(); }
bool channel::lost() const { return state_->connection->lost(); }
std::string channel::why_lost() const { return state_->connection->why_lost(); }
const peer_info& channel::peer() const { return state_->connection->peer; }
const std::string& channel::address() const { return state_->address; }

channel_group::channel_group(channel_options options)
    : state_(std::make_shared<detail::channel_group_state>(std::move(options))) {}
channel_group::~channel_group() {
  for (auto& c : state_->channels()) {
    c->connection->on_event(nullptr);
    c->connection->close();
    c->fail_all(make_failure(errc::cancelled, "the channel_group was destroyed"));
  }
}

void channel_group::dial(const std::string& address, deadline until, channel_events events,
                         link_callback then, const std::string& task) {
  std::make_shared<detail::dialer>(address, task, state_->options, state_->tls, until, state_)
      ->begin([weak = std::weak_ptr(state_), address, events = std::move(events),
               then = std::move(then)](std::shared_ptr<detail::connection_state> c,
                                       std::shared_ptr<const error> failure) mutable {
        if (!c) return then(nullptr, std::move(failure));
        const auto group = weak.lock();
        if (!group) {
          c->close();
          return then(nullptr, make_failure(errc::cancelled, "the channel_group was destroyed"));
        }
        std::shared_ptr<channel> made;
        failure = failure_of([&] {
          auto s = std::make_shared<detail::channel_state>(c, address, group, std::move(events));
          made = std::make_shared<channel>(s);
          group->add(std::move(s));
        });
        if (failure) c->close();
        then(failure ? nullptr : std::move(made), failure);
      });
}

std::string timeout_message(const std::string& address, std::chrono::nanoseconds waited,
                            const std::string& why) {
  return str("timed out after ", duration_text(waited), " waiting for ", address, ": ", why);
}

std::shared_ptr<channel> channel_group::connect(const std::string& address, deadline until,
                                                channel_events events, const std::string& task) {
  const auto began = std::chrono::steady_clock::now();
  try {
    return dial_and_wait(address, until, std::move(events), task);
  } catch (const error& e) {
    if (e.reason() != error_reason::connect_timeout) throw;
    throw e.with_message(
        timeout_message(address, std::chrono::steady_clock::now() - began, e.message()));
  }
}

std::shared_ptr<channel> channel_group::dial_and_wait(const std::string& address, deadline until,
                                                      channel_events events,
                                                      const std::string& task) {
  struct outcome {
    std::shared_ptr<channel> link;
    std::shared_ptr<const error> failure;
    detail::event_loop::sleeper sleeper;
    std::atomic<bool> there{false};
  };
  const auto o = std::make_shared<outcome>();
  auto& loop = detail::event_loop::of_callers();
  const detail::serving_threads::blocking_region while_waiting;
  dial(
      address, until, std::move(events),
      [o, &loop](std::shared_ptr<channel> c, std::shared_ptr<const error> failure) {
        o->link = std::move(c);
        o->failure = std::move(failure);
        o->there = true;
        loop.wake(o->sleeper);
      },
      task);
  loop.wait(
      o->sleeper, [&] { return o->there.load(); }, no_deadline);
  if (o->failure) throw error(*o->failure);
  return o->link;
}

void channel_group::notify() { state_->notify(); }
bool channel_group::serve(bool (*ready)(void*), void* context, std::chrono::microseconds unseen) {
  return state_->serve(ready, context, unseen);
}
bool channel_group::wait(bool (*ready)(void*), void* context, deadline until, bool for_others) {
  return for_others ? state_->read(ready, context, until) : state_->wait(ready, context, until);
}

}  // namespace deft::ext
