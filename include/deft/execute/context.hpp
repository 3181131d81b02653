// SPDX-License-Identifier: Apache-2.0
// deft/execute/context.hpp: what a kernel may know of the step it runs in, and of its task.
#pragma once
#include <cstdint>
#include <deft/core/any_array.hpp>
#include <deft/device/info.hpp>
#include <deft/graph/graph_def.hpp>
#include <memory>
#include <stop_token>

namespace deft {

/// Calls a waiting lane back; made by value_call::waker. Copies may be kept by whatever is waited
/// for, longer than the run lasts.
class waker {
 public:
  /// What a waker refers to: one lane of a frame.
  class target {
   public:
    virtual ~target() = default;
    virtual bool wake(std::uint64_t run) = 0;
  };
  waker() = default;
  waker(std::shared_ptr<target> to, std::uint64_t run) : target_(std::move(to)), run_(run) {}

  /// The lane goes on, on whatever thread its driver chooses; the call may come before the kernel
  /// that asked has returned. False if the run it belongs to is over.
  bool operator()() const { return target_ && target_->wake(run_); }

 private:
  std::shared_ptr<target> target_;
  std::uint64_t run_ = 0;
};

/// Where a send goes and a receive comes from.
struct transfer {
  std::uint64_t key = 0;
  placement peer;  ///< task
};

/// How a running part exchanges values with the parts of other tasks. Sends and receives are
/// numbered as executable::sends() and receives() list them. Thread-safe.
class rendezvous {
 public:
  virtual ~rendezvous() = default;
  /// Hands over a value as soon as it is made; never waits for the receiver.
  virtual void send(std::size_t number, const any_array& value) = 0;
  /// What was sent so far had better leave now: the part waits, ends, or begins something long.
  /// `ends`: nothing is left to do in it.
  virtual void flush(bool /*ends*/) {}
  /// The value of receive `number`; false if it is not there yet: then `w` is called once it is, or
  /// once it can no longer come, which the next call throws.
  virtual bool receive(std::size_t number, any_array& value, const waker& w) = 0;
};

/// A node of a running part, as errors and observers name it.
struct node_label {
  const op_def* op = nullptr;
  node_name name;
  source_place place;
};

/// Sees every item of a schedule begin and end. Calls come from several threads.
class step_observer {
 public:
  virtual ~step_observer() = default;
  virtual void begin(const node_label& n, std::uint32_t lane) = 0;
  virtual void end(const node_label& n, std::uint32_t lane) = 0;
};

/// One that is never requested.
inline const std::stop_token& never_stopped() {
  static const auto& token = *new std::stop_token;
  return token;
}

/// What random operations count with. Streams begin far from each other: multiples of the golden
/// section of 2^64 keep their distance.
constexpr std::uint64_t draw_counter(std::uint64_t stream, std::uint64_t step) {
  return stream * 0x9e3779b97f4a7c15u + step;
}

/// A step of a part. Whoever starts a run keeps it, and what it refers to, until the run has ended.
struct step_context {
  std::uint64_t step = 0;          ///< the session's step
  std::uint64_t draw = 0;          ///< counter of random operations: see draw_counter
  rendezvous* exchange = nullptr;  ///< null: the part has no sends and receives
  const std::stop_token& stop = never_stopped();  ///< the run is to end as soon as it can
  step_observer* observer = nullptr;
};

}  // namespace deft
