// SPDX-License-Identifier: Apache-2.0
// deft/execute/frame_state.hpp: the state of a run of a part.
#pragma once
#include <atomic>
#include <deft/execute/frame_values.hpp>
#include <deft/execute/lane_gate.hpp>
#include <deft/execute/schedule.hpp>
#include <deft/execute/segments.hpp>
#include <deft/kernels/row_call_list.hpp>
#include <deft/kernels/team.hpp>
#include <mutex>
#include <optional>

namespace deft::ext::exec {

/// Tells the observer, if any, when an item begins and when it ends, also by an exception.
class observation {
 public:
  observation(step_observer* o, const node_label& n, std::uint32_t lane)
      : observer_(o), node_(n), lane_(lane) {
    if (observer_) observer_->begin(node_, lane_);
  }
  ~observation() {
    if (observer_) observer_->end(node_, lane_);
  }
  observation(const observation&) = delete;

 private:
  step_observer* const observer_;
  const node_label& node_;
  const std::uint32_t lane_;
};

/// Lanes are run in executor.ipp, items in items.ipp.
class frame_state {
 public:
  explicit frame_state(const executable::compiled& c);
  ~frame_state();

  /// See executable::frame.
  bool start(std::span<const feed_ref> feeds, const step_context& context, step_driver* driver);
  void resume(std::uint32_t index);
  std::shared_ptr<const error> failure() const { return failure_; }
  bool has_updated() const;
  const any_array& peek(std::size_t i);
  any_array take(std::size_t i) { return peek(i), std::move(fetched_[i]); }
  void release();
  bool may_park() const { return c_.may_park; }
  /// After the end, of a function: its value `i`, where it is.
  feed_ref result(std::size_t i) const { return values_.as_ref(c_.fetch_values[i]); }
  /// Ends the run with this error, unless it has failed before. Of a function, whose caller has.
  void stop(const error& why) { note_failure(why, none); }
  std::size_t lanes() const { return lanes_.size(); }

 private:
  struct lane_job : team_job {
    frame_state* frame = nullptr;
    std::uint32_t lane = 0;
  };
  /// A variable whose elements were replaced, and its elements before.
  struct replaced {
    variable_slot* variable = nullptr;
    const void* now = nullptr;
    any_array before;
  };
  struct lane {
    std::uint32_t pc = 0;  ///< item
    lane_job job;
    bound_rows rows;
    std::vector<tensor_type> in_types, out_types;
    std::vector<const void*> in;  ///< addresses of the item that is run
    std::vector<void*> out;       ///< likewise
    std::vector<buffer> fresh;    ///< written by an update that cannot write in place
    /// Variables of an update, in the order in which they are locked.
    std::vector<variable_slot*> in_order;
    std::vector<event_ptr> pending;    ///< copies that the run has to wait for
    event_ptr drained;                 ///< work that the lane waits for
    std::vector<replaced> variables;   ///< replaced by work that may still fail
    segment_launches* open = nullptr;  ///< of the segment that is run
    std::uint32_t next = none;         ///< of the ready_lanes that it is in
  };
  /// Lanes that can be run, the last one first. Each is in one such list at most, so adding it
  /// needs no memory.
  class ready_lanes {
   public:
    explicit ready_lanes(std::vector<lane>& lanes) : lanes_(lanes) {}
    bool empty() const { return top_ == none; }
    void push(std::uint32_t l) { lanes_[l].next = std::exchange(top_, l); }
    std::uint32_t pop() { return std::exchange(top_, lanes_[top_].next); }

   private:
    std::vector<lane>& lanes_;
    std::uint32_t top_ = none;
  };
  class call_of;
  /// What a value kernel has of its own in a run.
  struct value_kernel_run {
    std::any state;
    wait_list::ticket ticket;  ///< destroyed first: it may wake others
  };

  class call_driver;
  class call_of_function;
  /// A node that calls functions, in a run.
  struct calling;

  // Lanes.

  /// Runs these lanes, and those that they wake. Returns true if this call ended the run.
  bool drive(ready_lanes& ready, bool starting = false);
  /// Runs from lanes_[l].pc to the end of the lane and returns true, or until it has to wait and
  /// returns false: another thread may then already run the lane. Adds lanes that it wakes to
  /// `ready`. Without MayPark it is the only lane of a part, in which nothing waits.
  template <bool MayPark>
  bool run_lane(std::uint32_t l, ready_lanes& ready);
  template <bool MayPark>
  bool run_items(std::uint32_t l, ready_lanes& ready);
  bool lane_ended();
  /// Ends the run once the devices have done its work. Returns false if it has to wait; another
  /// thread may then already use the frame.
  bool finish();
  void stop_devices();
  void end_run();
  /// Drops bound calls, as the addresses of the arenas have changed.
  void unbind();
  /// Nothing refers to the feeds any more.
  void give_up_start();
  void check_stop() const {
    if (context_->stop.stop_requested()) throw error(errc::cancelled, "the step was cancelled");
  }

  // Waiting.

  const std::shared_ptr<lane_gate>& gate(std::uint32_t l) const { return (*gates_)[l]; }
  /// Whether the host may read the item's inputs; if not, the lane is woken when it may.
  bool inputs_ready(const item& i, std::uint32_t l);
  /// Whether all work of the lane on the item's device is done; if not, the lane is woken when it
  /// is.
  bool is_drained(const item& i, std::uint32_t l);
  void call_back(const event_ptr& e, std::uint32_t l);
  bool park(std::uint32_t l);
  /// Signals between lanes: 0, 1 once given, or 2 more than the number of the lane that waits.
  bool wait_signal(std::uint32_t s, std::uint32_t l);
  void give_signal(std::uint32_t s, ready_lanes& ready);
  /// Wakes all waiting lanes, which then see that the run is to end.
  struct interrupter {
    frame_state* f;
    /// The gates are kept: a lane that is woken here may end the run, and the frame with it.
    void operator()() const {
      const auto gates = f->gates_;
      for (const auto& g : *gates) g->interrupt();
    }
  };

  // Errors.

  /// Records the first error of the run, and wakes waiting lanes, which then see it.
  void note_failure(const error& e, std::uint32_t item);
  /// Ends the run with this error. No lane runs any more.
  void end_with(std::shared_ptr<const error> why);
  error located(const error& e, std::uint32_t item) const;
  /// Throws if the step has failed on a device, so that it sends and computes nothing more.
  void look_at_devices();
  /// After a failure: restores variables whose new elements were not written.
  void restore_variables();
  bool is_update(std::uint32_t k) const;

  // Items.

  /// Infers the shapes of an item's outputs, and prepares what depends on them.
  void prepare(const item& i, std::uint32_t in_lane);
  void fit_slots(const item& i);
  void run_item(const item& i, std::uint32_t k, std::uint32_t l);
  void run_kernel(const item& i, std::uint32_t k, std::uint32_t l);
  void launch(const item& i, std::uint32_t k, std::uint32_t l, kernel& what, kernel_call& call,
              std::uint32_t ins, std::uint32_t outs);
  /// Runs the segment that begins at the lane's item.
  void run_segment(std::uint32_t l);
  bool run_value_kernel(const item& i, std::uint32_t l);
  /// Calls the item's functions, one after another. Returns false if it has to wait.
  bool call(const item& i, std::uint32_t l);
  /// Begins function `f` of the item. Returns false if it has to be waited for.
  bool begin_function(const item& i, std::size_t f, std::uint32_t l);
  /// Of the item at which the lane is: whether none of its functions runs any more. If the run has
  /// failed, it ends what runs.
  bool functions_ended(std::uint32_t l);
  [[noreturn]] void function_failed(const item& i, const error& e) const;
  const tensor_type& declared_of(const item& i, std::uint32_t o = 0) const {
    return c_.type(c_.values[i.first_out + o]);
  }
  const tensor_type& variable_of(const item& i, std::uint32_t o = 0) const {
    return c_.types[c_.variable_types[i.variable + o]];
  }
  /// Checks variable `o` of the item; its guard is held. Throws failed_precondition if the variable
  /// has no value, or its dtype, shape or device differs.
  void need_value(const variable_slot& v, const item& i, std::uint32_t o = 0) const;
  /// Throws aborted if variable `o` of the item was restored since the plan was made.
  void need_standing(const variable_slot& v, const item& i, std::uint32_t o = 0) const;
  void read(const item& i, std::uint32_t l);
  void assign(const item& i, std::uint32_t in, std::uint32_t l);
  void update(const item& i, std::uint32_t k, std::uint32_t l);
  void copy(const item& i, std::uint32_t in, std::uint32_t l);
  void fetch(const item& i, std::uint32_t in, std::uint32_t l);
  /// Makes the device wait for the copies of the item's operands before its next launch.
  void wait_on_device(const item& i);
  const event_ptr& event_of(std::uint32_t v) const;
  void set_event(std::uint32_t v, event_ptr done, std::vector<event_ptr>& pending) {
    if (c_.values[v].event == none) return;
    events_[c_.values[v].event] = done;
    if (done) pending.push_back(std::move(done));
  }
  device_step* step_on(const item& i) const;

  const executable::compiled& c_;
  frame_values values_;
  std::vector<event_ptr> events_;
  std::vector<const bound_call*> bound_;            ///< of items whose operands stay where they are
  std::vector<std::vector<tensor_type>> prepared_;  ///< of computations whose shapes change
  std::vector<kernel_ptr> kernels_;                 ///< of computations
  std::vector<value_kernel_run> value_kernel_runs_;  ///< by value kernel
  std::vector<std::unique_ptr<calling>> calling_;    ///< by call
  std::vector<lane> lanes_;
  std::vector<segment_launches> segments_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> signals_;
  std::vector<any_array> fetched_;
  /// Of the lanes, and of the end.
  const std::shared_ptr<std::vector<std::shared_ptr<lane_gate>>> gates_ =
      std::make_shared<std::vector<std::shared_ptr<lane_gate>>>();
  std::vector<std::unique_ptr<device_step>> steps_;  ///< by number of c_.queues
  std::vector<event_ptr> feeding_;  ///< copies of feeds, which the run has to wait for
  std::vector<event_ptr> ends_;     ///< awaited at the end of the run, after all lanes
  bool ends_known_ = false;
  std::optional<std::stop_callback<interrupter>> stopped_;
  const step_context* context_ = nullptr;
  step_driver* driver_ = nullptr;
  std::mutex failure_guard_;
  std::shared_ptr<const error> failure_;
  bool update_failed_ = false;  ///< perhaps half way
  std::atomic<std::uint32_t> lanes_left_{0};
  std::atomic<bool> failed_{false};
  bool released_ = true;
  bool force_ = true;  ///< the last run failed: shapes may be incomplete
  std::uint64_t run_ = 0;
};

}  // namespace deft::ext::exec
