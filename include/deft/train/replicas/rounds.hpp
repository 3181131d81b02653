// SPDX-License-Identifier: Apache-2.0
// deft/train/replicas/rounds.hpp: the barrier at which replicas of a model train together, which
// knows its members.
#pragma once
#include <deft/kernels/resources.hpp>
#include <deft/train/replicas/step_barrier.hpp>
#include <deque>
#include <optional>
#include <utility>

namespace deft::ext {

/// Counts the replicas that have computed their gradients in a round, and grants the round, once it
/// has enough, to one session, which applies the gradients. Members are sessions. Thread-safe.
///
/// What a step may have to wait for takes its ticket, by which it is in a list as long as it waits,
/// and its waker.
///
/// Where that session is lost, or does not know whether all of its update was made, the variables
/// may be of two rounds: the barrier is torn. Its rounds stand still, and whoever takes part in one
/// gets aborted, until the variables have been restored and restart() says so.
class replica_barrier final : public resource,
                              public std::enable_shared_from_this<replica_barrier> {
 public:
  replica_barrier(std::int64_t needed, std::int64_t total) : needed_(needed), total_(total) {}

  /// A session is a member while it holds its membership.
  class membership {
   public:
    membership(std::shared_ptr<replica_barrier> barrier, std::uint64_t session)
        : barrier_(std::move(barrier)), session_(session) {}
    ~membership() { barrier_->lost(*this); }
    membership(const membership&) = delete;
    replica_barrier& barrier() const { return *barrier_; }
    std::uint64_t session() const { return session_; }

   private:
    const std::shared_ptr<replica_barrier> barrier_;
    const std::uint64_t session_;
  };
  /// The membership of a session, whose master is on `task`. Throws invalid_argument if the barrier
  /// was made for other numbers of replicas.
  std::shared_ptr<membership> join(std::uint64_t session, std::string_view task,
                                   std::int64_t needed, std::int64_t total);

  /// The member takes part from now on, and will apply gradients. `left`: tasks that it knows to
  /// have left. Throws aborted for a member from before a restart().
  void take_part(const membership& m, std::span<const std::string> left = {});
  /// The number of the round: variables that are read from now on are from this one, or later.
  std::int64_t current() const;
  /// Whether the gradients of `step`, which began in the round `begun`, counted, once its round is
  /// over or the member has left; empty if the step has to wait, until `w` is called. Throws what
  /// failed the round, aborted if the barrier is torn, and failed_precondition if no member applies
  /// gradients, unavailable if one that did was lost. Those of a member that has left never count.
  std::optional<bool> arrive(const membership& m, std::uint64_t step, std::int64_t begun,
                             wait_list::ticket& t, waker w);
  /// A step that has come to arrive() has ended, also without an answer; its gradients still count.
  void step_ended(const membership& m, std::uint64_t step);
  /// The sessions whose gradients count, ordered by the names of their tasks, once there are
  /// enough; empty if it has to wait. A member that waits applies gradients, also where it has not
  /// taken part since its connection was lost. Throws cancelled if it has left, or is from before a
  /// restart().
  std::vector<std::uint64_t> await(const membership& m, wait_list::ticket& t, waker w);
  /// Ends the round. Throws failed_precondition if it was not granted to this member.
  void end(const membership& m);
  /// `in_part`: gradients may have been applied, but not all.
  void fail(const membership& m, const error& why, bool in_part);
  void leave(const membership& m);

  /// What lets the steps of a session, which need not be a member, keep rounds from being applied,
  /// at most as long as the session holds it.
  class pause {
   public:
    explicit pause(std::shared_ptr<replica_barrier> barrier) : barrier_(std::move(barrier)) {}
    ~pause() { barrier_->drop(*this); }
    pause(const pause&) = delete;
    /// From now on no round is granted, until end() for each step that has begun. Returns whether
    /// none is being applied; if one is, `w` is called at its end. `w` also tells whether the step
    /// has ended. Throws aborted if the barrier is torn.
    bool begin(wait_list::ticket& t, const waker& w, std::uint64_t step = 0) const {
      return barrier_->pause_for(*this, step, t, w);
    }
    /// Of a step that has not begun: ends those that began and whose steps have ended; if there are
    /// none, the last one that began: its step has failed, and is about to end.
    void end(std::uint64_t step = 0) const { barrier_->resume_for(*this, step); }

   private:
    const std::shared_ptr<replica_barrier> barrier_;
  };
  std::shared_ptr<pause> pause_of(std::uint64_t session);

  /// 0 while it is torn, else a number that grows with each restart().
  std::int64_t generation() const;
  /// Whether it is whole. If not, `w` is called when it is.
  bool is_whole(wait_list::ticket& t, waker w);

  struct state {
    std::int64_t needed = 0;        ///< gradients that a round takes
    std::int64_t awaited = 0;       ///< replicas that have not come yet
    std::vector<std::string> left;  ///< the tasks of those that came and left
  };
  state describe_state() const;

  /// Begins the next round without the gradients of this one: the variables get other values. The
  /// members, whose steps are of the old ones, do not take part any more: sessions that are made
  /// later do.
  void restart();
  void clear() override;
  std::size_t bytes() const override { return 0; }
  std::string describe() const override;

 private:
  struct member {
    std::string task;
    std::weak_ptr<membership> token;
    bool leads = false, left = false;
    bool revoked = false;    ///< by a restart
    std::int64_t round = 0;  ///< it began when this was the current one, or has seen it begin
    std::map<std::uint64_t, step_barrier::arrival> arrived = {};  ///< by step
    std::shared_ptr<const error> failure = {};                    ///< of its own part in the round
  };
  /// Whom a function wakes at its end: declared before the lock.
  struct wakers {
    explicit wakers(replica_barrier& b)
        : arrivals(b.rounds_.waiting()), leaders(b.leaders_), pauses(b.pauses_) {}
    wake_at_end arrivals, leaders, pauses;
  };

  void lost(const membership& m);
  std::int64_t needed_now() const;
  /// Whether the round can be granted.
  bool complete() const {
    return rounds_.has(needed_now()) && !leader_ && pausing_.empty() && torn_by_.empty();
  }
  void expect_whole() const;
  static void expect_member(const member& m);
  /// The caller begins the next round.
  void tear(std::string cause);
  bool pause_for(const pause& p, std::uint64_t step, wait_list::ticket& t, const waker& w);
  void resume_for(const pause& p, std::uint64_t step);
  void drop(const pause& p);
  /// The steps that hold `p` and have ended, but `step`. Called without the guard.
  std::vector<std::uint64_t> ended_steps(const pause& p, std::uint64_t step) const;
  /// The caller holds the guard. `applied`: the gradients were.
  void begin_next(bool applied, wakers& woken);
  /// Notes that a replica is back.
  void remember(const member& m);
  /// Notes, and logs, that a replica has left, unless its task is there with another session.
  void forget(const member& m);

  const std::int64_t needed_, total_;
  mutable std::mutex guard_;
  std::map<std::uint64_t, member> members_;  ///< by session
  std::vector<std::string> left_;            ///< the tasks of those that left
  step_barrier rounds_;  ///< where members arrive; also those who wait until it is not torn
  std::optional<std::uint64_t> leader_;  ///< to whom the round is granted
  std::deque<std::uint64_t> revoked_;    ///< sessions from before a restart that were lost
  bool lost_leads_ = false;  ///< a member that applies gradients was lost, and none has come since
  std::string torn_by_;      ///< why it is torn; empty while it is not
  std::int64_t generation_ = 1;
  std::int64_t failed_round_ = 0;  ///< the last one that failed
  std::shared_ptr<const error> why_;
  wait_list leaders_;  ///< for a round to be granted
  wait_list pauses_;   ///< for the end of a round that is being applied
  std::map<std::uint64_t, std::weak_ptr<pause>> pausers_;            ///< by session
  std::map<std::pair<const pause*, std::uint64_t>, waker> pausing_;  ///< by step
};

}  // namespace deft::ext
