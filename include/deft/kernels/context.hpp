// SPDX-License-Identifier: Apache-2.0
// deft/kernels/context.hpp: what a kernel may know of the step it runs in, and of its task.
#pragma once
#include <cstdint>
#include <deft/core/any_array.hpp>
#include <deft/device/info.hpp>
#include <deft/graph/graph_def.hpp>
#include <memory>
#include <stop_token>

namespace deft::ext {

/// Resumes a waiting lane; made by value_call::make_waker. Copies may be kept longer than the run
/// lasts; a wait_list drops them with it.
class waker {
 public:
  /// What a waker refers to: one lane of a frame.
  class target {
   public:
    virtual ~target() = default;
    virtual bool wake(std::uint64_t run) = 0;
    virtual bool is_over(std::uint64_t run) = 0;
  };
  waker() = default;
  waker(std::shared_ptr<target> to, std::uint64_t run) : target_(std::move(to)), run_(run) {}

  /// Resumes the lane, on a thread that its driver chooses. May be called before the kernel that
  /// made the waker has returned. Returns false if the run is over.
  bool operator()() const { return target_ && target_->wake(run_); }
  /// Whether the run is over. Wakes nothing.
  bool is_over() const { return !target_ || target_->is_over(run_); }

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
  /// Sends a value as soon as it is computed; never waits for the receiver.
  virtual void send(std::size_t number, const any_array& value) = 0;
  /// A hint to transmit the values sent so far: the part waits, ends, or begins something long.
  /// `ends`: the part has nothing left to do.
  virtual void flush(bool /*ends*/) {}
  /// Takes the value of receive `number`. Returns false if it has not arrived: `w` is called when
  /// it arrives, or when it no longer can, in which case the next call throws the error.
  virtual bool receive(std::size_t number, any_array& value, const waker& w) = 0;
};

/// A node of a running part, as errors and observers name it.
struct node_label {
  const op_def* op = nullptr;
  node_name name;
  owned_location location;
  placement device = nullptr;
};

/// Is called when an item of a schedule begins and ends, from several threads.
class step_observer {
 public:
  virtual ~step_observer() = default;
  virtual void begin(const node_label& n, std::uint32_t lane) = 0;
  virtual void end(const node_label& n, std::uint32_t lane) = 0;
};

/// A token whose stop is never requested.
inline const std::stop_token& never_stopped() {
  static const auto& token = *new std::stop_token;
  return token;
}

/// The counter of random operations; `draw` is the number of the step among those of its session
/// that draw random numbers. Streams begin far apart: multiples of the golden section of 2^64 keep
/// their distance.
constexpr std::uint64_t draw_counter(std::uint64_t stream, std::uint64_t draw) {
  return stream * 0x9e3779b97f4a7c15u + draw;
}

/// A step of a part. The caller keeps it, and what it refers to, alive until the run has ended.
struct step_context {
  std::uint64_t step = 0;  ///< the session's step
  std::uint64_t draw = 0;  ///< counter of random operations: see draw_counter
  /// Of a function: which node calls it, and how often it has before; 0 outside of functions.
  std::uint64_t path = 0;
  rendezvous* exchange = nullptr;                 ///< null: the part has no sends and receives
  const std::stop_token& stop = never_stopped();  ///< cancels the run
  step_observer* observer = nullptr;
};

}  // namespace deft::ext
