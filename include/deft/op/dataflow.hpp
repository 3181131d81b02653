// SPDX-License-Identifier: Apache-2.0
// deft/op/dataflow.hpp: the operations that lowering and plans make; none is a function of the
// user's.
#pragma once
#include <deft/op/shapes.hpp>

namespace deft::op {

/// A whole elementwise expression: a portable program over the inputs, which are broadcast
/// together. Where the literals are known only when a plan is run, they are further inputs, of
/// rank 0, and `immediates` is not used.
struct fused {
  static constexpr std::string_view name = "fused";
  static constexpr int arity = 0;
  static constexpr int max_arity = -1;
  program_ref program;
  integers immediates;  ///< bits of the literals, as to_immediate makes them
  static constexpr auto fields =
      field_list(field{"program", &fused::program}, field{"immediates", &fused::immediates});

  tensor_type infer(std::span<const tensor_type> in) const;
};

/// Stands for feed number `index` of a plan.
struct feed {
  static constexpr std::string_view name = "feed";
  static constexpr int arity = 0;
  static constexpr op_traits traits = op_traits::stateful;
  std::int64_t index = 0;
  dtype type = dtype::none;
  dims shape;
  static constexpr auto fields = field_list(
      field{"index", &feed::index}, field{"dtype", &feed::type}, field{"shape", &feed::shape});

  tensor_type infer(std::span<const tensor_type>) const {
    if (index < 0) fail(errc::invalid_argument, "[feed] there is no feed number ", index);
    expect_extents(name, shape, true);
    return {shape, type};
  }
};

/// Pushes its input to another task, where a `recv` of the same key waits for it.
struct send {
  static constexpr std::string_view name = "send";
  static constexpr int arity = 1;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::no_value;
  std::string key;
  std::string peer;  ///< device or task that receives
  static constexpr auto fields = field_list(field{"key", &send::key}, field{"peer", &send::peer});

  void infer(std::span<const tensor_type>) const;
};

/// What a `send` of another task pushes.
struct recv {
  static constexpr std::string_view name = "recv";
  static constexpr int arity = 0;
  static constexpr op_traits traits = op_traits::stateful;
  std::string key;
  std::string peer;  ///< device or task that sends
  dtype type = dtype::none;
  dims shape;
  static constexpr auto fields =
      field_list(field{"key", &recv::key}, field{"peer", &recv::peer}, field{"dtype", &recv::type},
                 field{"shape", &recv::shape});

  tensor_type infer(std::span<const tensor_type>) const;
};

/// Its input on another device of the same task.
struct copy {
  static constexpr std::string_view name = "copy";
  static constexpr int arity = 1;
  std::string device;
  static constexpr auto fields = field_list(field{"device", &copy::device});

  tensor_type infer(std::span<const tensor_type> in) const;
};

}  // namespace deft::op
