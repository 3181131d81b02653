// SPDX-License-Identifier: Apache-2.0
// deft/execute/schedule.hpp: the tables that a part is compiled into; internal to the executor.
#pragma once
#include <atomic>
#include <deft/execute/executor.hpp>
#include <deft/graph/function.hpp>

namespace deft::ext {
namespace exec {

constexpr std::uint32_t none = ~std::uint32_t{0};

/// What an item does.
enum class action : std::uint8_t {
  run,     ///< a kernel
  read,    ///< a variable's value
  assign,  ///< gives a variable its input
  update,  ///< a kernel on the elements of variables
  alias,   ///< another name for its input's elements
  copy,    ///< to another device
  fetch,   ///< to the host, where fetches are
  run_value_kernel,
  call,    ///< a call_kernel and its functions
  refuse,  ///< a placeholder that was not fed: throws
  signal,  ///< tells another lane that all before it is done
  wait,    ///< waits for such a signal
  drain,   ///< waits for the work that the item before has started
};

/// One step of a lane. Numbers refer to the tables of the compiled part.
struct item {
  action what = action::run;
  bool dynamic : 1 = false;          ///< some extent is known only at run time
  bool on_host : 1 = true;           ///< the kernel may be run directly
  bool input_in_flight : 1 = false;  ///< an input comes by a copy that may still be under way
  bool bindable : 1 = false;         ///< its operands stay where they are as long as the arena does
  bool begins_segment : 1 = false;
  bool keeps_extents : 1 = false;  ///< of an assignment
  bool only_first : 1 = false;     ///< likewise: it leaves a value that is there
  std::uint16_t device = 0;
  std::uint32_t node = 0;                 ///< the node that errors name
  std::uint32_t first_in = 0, ins = 0;    ///< into `inputs`
  std::uint32_t first_out = 0, outs = 0;  ///< values
  std::uint32_t first_release = 0, releases = 0;
  std::uint32_t number = 0;    ///< of a computation, a signal, a fetch, a value kernel or a call
  std::uint32_t variable = 0;  ///< of reads, assigns and updates: the first, as many as `outs`
};
static_assert(sizeof(item) == 40);

/// Where the elements of a value are.
enum class storage : std::uint8_t {
  shared,         ///< in memory that comes with the value: constants, reads, receives, large feeds
  arena_static,   ///< in the arena, at an offset fixed by the plan
  arena_dynamic,  ///< in the arena, in a slot whose size is known only at run time
  buffer,         ///< in a separate buffer, as it may outlive the run or comes from the host
};

/// An output of a node.
struct value_info {
  std::uint32_t type = 0;  ///< as declared
  std::uint32_t node = 0;
  std::uint32_t root = 0;      ///< the value whose elements it shares; itself if it has its own
  std::uint32_t shape = none;  ///< number of its run-time shape; none: the type has the shape
  std::uint32_t event = none;  ///< number of the event of the copy that makes it
  std::uint32_t uses = 0;
  std::uint32_t last_use = 0;  ///< item; none: as long as the run
  std::uint16_t space = 0, device = 0;
  std::size_t offset = 0;  ///< arena_static: bytes; arena_dynamic: slot; buffer: number
  storage where = storage::shared;
  bool escapes = false;  ///< may be held beyond the run
};
static_assert(sizeof(value_info) == 48);

/// What a frame makes a kernel and infers shapes from. Items of one lane with equal nodes share one
/// if all extents are known, as their kernels would be equal.
struct computation {
  node_def node;
  /// Types, as declared; an update's first are those of its variables.
  std::vector<std::uint32_t> in;
  std::uint32_t item = 0;  ///< the first
};

/// Memory that some devices share, and how much of it a run uses.
struct space_info {
  device_runtime* device = nullptr;  ///< one of them
  std::size_t bytes = 0;             ///< of the arena_static values
  std::size_t block_bytes = 0;       ///< the first of those, filled by one copy
  std::uint32_t slots = 0;           ///< of the arena_dynamic ones
};

struct lane_info {
  std::uint32_t first = 0, end = 0;  ///< items
  bool quick = false;     ///< only starts work of a device: runs on the thread that wakes it
  bool parallel = false;  ///< another thread may run it
};

/// Consecutive items of a lane that only launch kernels of one device, and are started together.
struct segment_info {
  std::uint32_t first = 0, end = 0;  ///< items
  std::size_t launches = 0;
  std::size_t addresses = 0;              ///< of all operands and results
  std::vector<variable_slot*> variables;  ///< in the order of their locks
};

/// A node that calls functions.
struct call_info {
  call_kernel_ptr kernel;
  struct callee {
    function_ref function;
    std::unique_ptr<const executable::compiled> code;
    std::uint32_t first_lane = 0;  ///< by which observers tell its lanes from others
  };
  std::vector<callee> functions;
};

}  // namespace exec

struct executable::compiled {
  std::vector<node_label> labels;
  std::vector<tensor_type> types;  ///< all that occur
  std::vector<exec::lane_info> lanes;
  std::vector<exec::item> items;             ///< lane after lane
  std::vector<exec::segment_info> segments;  ///< in the order of items
  std::vector<std::uint32_t> inputs;         ///< values
  std::vector<std::uint32_t> releases;       ///< values that hold shared memory, by last use
  std::vector<exec::value_info> values;
  std::vector<exec::space_info> spaces;
  std::vector<std::pair<std::uint32_t, buffer>> constants;  ///< values, and elements on the device
  std::vector<std::uint32_t> feed_values, feed_numbers;
  std::vector<std::uint32_t> fetch_values;  ///< none for an operation
  std::vector<std::uint32_t> holders;       ///< values that may hold shared memory
  std::vector<device_runtime*> devices;     ///< by number
  std::vector<device_runtime*> queues;      ///< the asynchronous ones
  std::uint32_t signals = 0, events = 0, shapes = 0, owned = 0;
  std::uint32_t most_ins = 0, most_outs = 0;  ///< of an item
  bool may_park = false, parallel = false;
  const resource_store* store = nullptr;
  std::vector<exec::computation> computations;
  /// Kernels made to plan with, by computation: those on the host. The first frame takes them.
  mutable std::vector<kernel_ptr> kernels;
  mutable std::atomic<bool> kernels_taken{false};
  std::vector<value_kernel_ptr> value_kernels;
  std::vector<exec::call_info> calls;
  std::uint32_t all_lanes = 0;  ///< also of functions
  std::vector<transfer> sends, receives;
  std::vector<std::shared_ptr<variable_slot>> variables;
  std::vector<std::uint32_t> variable_types;  ///< as declared: a result may know more extents
  std::vector<std::int64_t> generations;      ///< of the variables, when this was made

  const node_label& label(const exec::item& i) const { return labels[i.node]; }
  device_runtime& device(const exec::item& i) const { return *devices[i.device]; }
  device_runtime& device(const exec::value_info& v) const { return *devices[v.device]; }
  const tensor_type& type(const exec::value_info& v) const { return types[v.type]; }
  /// Makes the kernel, prepared if all extents are known; null if the node needs none.
  kernel_ptr make_kernel(const exec::computation& c) const;
};

}  // namespace deft::ext
