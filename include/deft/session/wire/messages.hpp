// SPDX-License-Identifier: Apache-2.0
// deft/session/wire/messages.hpp: the messages between clients, masters and workers. Each is a
// struct with its kind in `number`; `fields` says in which part of a message its members are sent.
#pragma once
#include <deft/session/wire/serialize.hpp>
#include <deft/transport/message.hpp>
#include <string>
#include <utility>
#include <vector>

namespace deft::ext {

/// The incarnations of tasks, as a master knows them.
using incarnation_list = std::vector<std::pair<std::string, std::uint64_t>>;

namespace wire {

enum class kind : std::uint16_t {
  // Master to worker.
  register_part = 16,
  run_part = 17,
  tensors = 18,
  cancel_step = 19,
  drop_part = 20,
  drop_session = 21,
  devices = 22,
  reset = 23,
  // Worker to master.
  link_lost = 24,
  // Master to worker again.
  resolve_step = 25,
  // Client to master.
  open_session = 32,
  make_plan = 33,
  run_plan = 34,
  drop_plan = 35,
  cluster_devices = 36,
  reset_cluster = 37,
  close_session = 38,
  cancel_run = 39,
  describe_plan = 40,
  resolve_run = 41,
  // Between the tasks of a training job.
  wait_signal = 48,
  set_signal = 49,
  done = 50,
};

// Answers.

/// The answer without a value.
struct nothing {
  template <class F>
  void fields(F&) {}
};
/// The values of the fetches that have one, then values for the own part of the master.
struct values {
  std::vector<any_array> tensors = {};
  std::vector<std::uint32_t> keys = {};  ///< of the last tensors, those for the master's part
  std::vector<trace_event> trace = {};   ///< if the run was to be traced
  template <class F>
  void fields(F& f) {
    f.extras(keys, trace);
    f.tensors(tensors);
  }
};
struct session_opened {
  std::uint64_t session = 0;
  template <class F>
  void fields(F& f) {
    f.ids(session);
  }
};
struct plan_made {
  std::uint64_t session = 0, plan = 0;
  template <class F>
  void fields(F& f) {
    f.ids(session, plan);
  }
};
struct plan_described {
  plan_description made = {};
  template <class F>
  void fields(F& f) {
    f.meta(made.placed, made.passes, made.apart);
  }
};
struct fate_of_step {
  step_fate fate = step_fate::unknown;
  template <class F>
  void fields(F& f) {
    f.meta(fate);
  }
};
struct device_list {
  std::vector<device_info> devices = {};
  /// For each device, the hash of its kernels if they were left out, as the caller has the same;
  /// else 0. Empty: none were.
  std::vector<std::uint64_t> known_kernels = {};
  template <class F>
  void fields(F& f) {
    f.meta(devices, known_kernels);
  }
};

// Master to worker. A message without `answer` is not answered.

/// Errors are reported when the part is run.
struct register_part {
  static constexpr kind number = kind::register_part;
  std::uint64_t session = 0, handle = 0;
  plan::part part = {};
  incarnation_list incarnations = {};  ///< of the tasks that the part exchanges values with
  template <class F>
  void fields(F& f) {
    f.ids(session, handle);
    f.meta(part, incarnations);
  }
};
struct run_part {
  static constexpr kind number = kind::run_part;
  using answer = values;
  std::uint64_t session = 0, step = 0, handle = 0;
  std::uint64_t ended_below = 0;  ///< all steps with lower numbers have ended
  std::uint64_t draw = 0;         ///< of a step that draws random numbers: see draw_counter
  std::vector<any_array> feeds = {};
  bool trace = false;  ///< the answer says when each node ran
  template <class F>
  void fields(F& f) {
    f.ids(session, step);
    f.flags(trace);
    f.meta(handle, ended_below, draw);
    f.tensors(feeds);
  }
};
/// Values of a step, each with its key. From worker to worker, or to the master's task, on the
/// connection by which that runs the part.
struct tensors {
  static constexpr kind number = kind::tensors;
  std::uint64_t session = 0, step = 0;
  std::vector<std::uint32_t> keys = {};
  std::vector<any_array> values = {};
  std::shared_ptr<const void> credit = {};  ///< see message::credit
  template <class F>
  void fields(F& f) {
    f.ids(session, step);
    f.keys(keys);
    f.tensors(values);
    f.credit(credit);
  }
};
struct cancel_step {
  static constexpr kind number = kind::cancel_step;
  std::uint64_t session = 0, step = 0;
  template <class F>
  void fields(F& f) {
    f.ids(session, step);
  }
};
/// Task `from` has lost its connection to task `to`: values of steps up to `step`, the last one
/// that it knew of, may not have arrived.
struct link_lost {
  static constexpr kind number = kind::link_lost;
  std::uint64_t session = 0, step = 0;
  std::string from = {}, to = {}, why = {};
  template <class F>
  void fields(F& f) {
    f.ids(session, step);
    f.meta(from, to, why);
  }
};
/// Stops a step of the session, and asks how it ended. It may have run on a connection that was
/// lost since. A restarted task does not know.
struct resolve_step {
  static constexpr kind number = kind::resolve_step;
  using answer = fate_of_step;
  std::uint64_t session = 0, step = 0;
  template <class F>
  void fields(F& f) {
    f.ids(session, step);
  }
};
struct drop_part {
  static constexpr kind number = kind::drop_part;
  std::uint64_t session = 0, handle = 0;
  template <class F>
  void fields(F& f) {
    f.ids(session, handle);
  }
};
struct drop_session {
  static constexpr kind number = kind::drop_session;
  std::uint64_t session = 0;
  template <class F>
  void fields(F& f) {
    f.ids(session);
  }
};
/// Asks for the devices of the task.
struct devices {
  static constexpr kind number = kind::devices;
  using answer = device_list;
  std::vector<std::uint64_t> known_kernels = {};  ///< hashes of kernel sets that the caller has
  template <class F>
  void fields(F& f) {
    f.meta(known_kernels);
  }
};
/// Deletes the variables of the task in a container.
struct reset {
  static constexpr kind number = kind::reset;
  using answer = nothing;
  std::string container = {};
  template <class F>
  void fields(F& f) {
    f.meta(container);
  }
};

// Client to master.

struct open_session {
  static constexpr kind number = kind::open_session;
  using answer = session_opened;
  session_options options = {};  ///< those that a master needs
  template <class F>
  void fields(F& f) {
    f.meta(options);
  }
};
struct make_plan {
  static constexpr kind number = kind::make_plan;
  using answer = plan_made;
  std::uint64_t session = 0;
  std::chrono::nanoseconds patience{
      0};  ///< how long tasks may be waited for; 0: as the options say
  flat_graph flat = {};
  template <class F>
  void fields(F& f) {
    f.ids(session);
    f.meta(patience, flat.graph, flat.fetches);
  }
};
/// Asks what a plan for the graph would be; see engine::describe.
struct describe_plan {
  static constexpr kind number = kind::describe_plan;
  using answer = plan_described;
  std::uint64_t session = 0;
  std::chrono::nanoseconds patience{0};  ///< as in make_plan
  flat_graph flat = {};
  template <class F>
  void fields(F& f) {
    f.ids(session);
    f.meta(patience, flat.graph, flat.fetches);
  }
};
struct run_plan {
  static constexpr kind number = kind::run_plan;
  using answer = values;
  std::uint64_t session = 0, plan = 0;
  std::chrono::nanoseconds timeout{0};  ///< 0: none
  bool can_be_cancelled = false;        ///< a cancel_run may follow
  std::vector<any_array> feeds = {};
  bool trace = false;  ///< as in run_part
  template <class F>
  void fields(F& f) {
    f.ids(session, plan);
    f.flags(can_be_cancelled);
    f.meta(timeout, trace);
    f.tensors(feeds);
  }
};
struct cancel_run {
  static constexpr kind number = kind::cancel_run;
  std::uint64_t session = 0, call = 0;  ///< the id of the run_plan
  template <class F>
  void fields(F& f) {
    f.ids(session, call);
  }
};
/// Stops what is left of a run that failed, and asks how its step ended.
struct resolve_run {
  static constexpr kind number = kind::resolve_run;
  using answer = fate_of_step;
  std::uint64_t session = 0, call = 0;     ///< the id of the run_plan
  std::chrono::nanoseconds patience = {};  ///< how long other tasks may be waited for
  template <class F>
  void fields(F& f) {
    f.ids(session, call);
    f.meta(patience);
  }
};
struct drop_plan {
  static constexpr kind number = kind::drop_plan;
  std::uint64_t session = 0, plan = 0;
  template <class F>
  void fields(F& f) {
    f.ids(session, plan);
  }
};
/// Asks for the devices of all tasks.
struct cluster_devices {
  static constexpr kind number = kind::cluster_devices;
  using answer = device_list;
  std::uint64_t session = 0;
  template <class F>
  void fields(F& f) {
    f.ids(session);
  }
};
/// Deletes the variables of all tasks in a container.
struct reset_cluster {
  static constexpr kind number = kind::reset_cluster;
  using answer = nothing;
  std::uint64_t session = 0;
  std::string container = {};
  template <class F>
  void fields(F& f) {
    f.ids(session);
    f.meta(container);
  }
};
struct close_session {
  static constexpr kind number = kind::close_session;
  std::uint64_t session = 0;
  template <class F>
  void fields(F& f) {
    f.ids(session);
  }
};

// Between the tasks of a training job.

/// Answered once the signal is set on the task.
struct wait_signal {
  static constexpr kind number = kind::wait_signal;
  using answer = nothing;
  std::string name = {};
  template <class F>
  void fields(F& f) {
    f.meta(name);
  }
};
struct set_signal {
  static constexpr kind number = kind::set_signal;
  using answer = nothing;
  std::string name = {};
  template <class F>
  void fields(F& f) {
    f.meta(name);
  }
};
/// The sender no longer needs the receiver, and ends; `serves`: once all others are done.
struct done {
  static constexpr kind number = kind::done;
  using answer = nothing;
  bool serves = false;
  template <class F>
  void fields(F& f) {
    f.meta(serves);
  }
};

}  // namespace wire
}  // namespace deft::ext
