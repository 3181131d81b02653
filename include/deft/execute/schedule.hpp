// SPDX-License-Identifier: Apache-2.0
// deft/execute/schedule.hpp: the tables that a part is compiled into, for the executor alone.
#pragma once
#include <deft/execute/executor.hpp>

namespace deft {
namespace exec {

constexpr std::uint32_t none = ~std::uint32_t{0};

/// What an item does.
enum class action : std::uint8_t {
  run,
  read,
  assign,
  update,
  alias,
  copy,
  send,
  receive,
  refuse,  ///< a placeholder: it should have been fed
};

/// One step of the schedule. Numbers refer to the tables of the compiled part.
struct item {
  action what = action::run;
  bool dynamic = false;  ///< some extent is known at run time only
  bool on_host = true;   ///< the kernel may be run directly
  std::uint32_t node = 0;
  std::uint32_t first_in = 0, ins = 0;    ///< into `inputs`
  std::uint32_t first_out = 0, outs = 0;  ///< values
  std::uint32_t first_release = 0, releases = 0;
  std::uint32_t number = 0;  ///< of a send or receive
  device_runtime* device = nullptr;
  variable_slot* variable = nullptr;
};

/// An output of a node.
struct value_info {
  tensor_type declared;
  std::uint32_t node = 0;
  std::uint32_t root = 0;     ///< the value whose elements it shares; itself if it has its own
  std::uint32_t slot = none;  ///< memory that the frame gives it; none: it brings its own
  std::uint32_t uses = 0;
  std::uint32_t last_use = 0;  ///< item
  bool escapes = false;        ///< may be held beyond the run
  device_runtime* device = nullptr;
};

struct slot_info {
  device_runtime* device = nullptr;
  tensor_type type;
  bool shared = true;  ///< other values may take it over once this one is dead
};

}  // namespace exec

struct executable::compiled {
  plan::part part;
  std::vector<exec::item> items;
  std::vector<std::uint32_t> inputs;    ///< values
  std::vector<std::uint32_t> releases;  ///< values that hold memory of others, by last use
  std::vector<exec::value_info> values;
  std::vector<exec::slot_info> slots;
  std::vector<std::uint32_t> first_value;  ///< of each node
  std::vector<std::uint32_t> constants;    ///< nodes
  std::vector<std::uint32_t> feed_values, feed_numbers;
  std::vector<std::uint32_t> fetch_values;  ///< none for an operation
  std::vector<std::uint32_t> holders;       ///< values that may hold memory of others
  std::vector<crossing> sends, receives;
  std::vector<std::shared_ptr<variable_slot>> variables;

  const node_def& node(const exec::item& i) const { return part.graph.nodes[i.node]; }
};

}  // namespace deft
