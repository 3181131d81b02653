// SPDX-License-Identifier: Apache-2.0
// deft/train/replicas/operations.hpp: how replicas of a model meet: gradients that wait for an
// update, and a barrier of rounds. sync_replicas (train/sync_replicas.hpp) makes these nodes.
#pragma once
#include <deft/op/catalog.hpp>

namespace deft::op {

/// What names a barrier on its task. A round of it needs gradients of so many of its replicas. They
/// are its sessions: a replica is there from when its session has a plan with one of these nodes,
/// until it leaves, or its session is closed or lost.
struct replica_round {
  static constexpr std::int64_t most = 4096;
  std::string container, barrier;
  std::int64_t needed = 1, total = 1;
  static constexpr int arity = 0;
  static constexpr auto fields = field_list(
      field{"container", &replica_round::container}, field{"barrier", &replica_round::barrier},
      field{"needed", &replica_round::needed}, field{"total", &replica_round::total});

 protected:
  void expect_possible(std::string_view op) const;
};

/// Yields the number of the round, int64: that of the step's gradients, as it comes before the
/// variables are read.
struct current_round : replica_round {
  static constexpr std::string_view name = "current_round";
  static constexpr op_traits traits = op_traits::stateful | op_traits::begins;
  tensor_type infer(std::span<const tensor_type> in) const;
};
/// Waits until the round is over, if the replica has computed its gradients in it. The input is the
/// round in which their step began. Yields whether they counted: they do not if the round had
/// enough before, or they are from an earlier round, in which case it does not wait.
struct arrive_at_round : replica_round {
  static constexpr std::string_view name = "arrive_at_round";
  static constexpr int arity = 1;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::waits;
  tensor_type infer(std::span<const tensor_type> in) const;
};
/// Waits until enough replicas have arrived, for one session, which then has to end the round. What
/// applies the gradients reads variables, so that it has to be another step, which begins later.
/// Yields int64 (needed), the sessions whose gradients count, and -1 for those that are missing
/// because too few replicas are left; and 1 divided by their number, a scalar of double.
struct await_replicas : replica_round {
  static constexpr std::string_view name = "await_replicas";
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::waits;
  std::vector<tensor_type> infer(std::span<const tensor_type> in) const;
};
/// Ends the round that await_replicas has granted to this session.
struct end_round : replica_round {
  static constexpr std::string_view name = "end_round";
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::no_value;
  void infer(std::span<const tensor_type> in) const;
};
/// Fails the round if it was granted to this session, else only this replica's part in it, with an
/// error: the inputs are its code, int32, its message, a string, and a bool, whether gradients may
/// have been applied in part.
struct fail_round : replica_round {
  static constexpr std::string_view name = "fail_round";
  static constexpr int arity = 3;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::no_value;
  void infer(std::span<const tensor_type> in) const;
};
/// From now on rounds wait for this replica, which also applies gradients. The input is a vector of
/// strings, the tasks of replicas that it knows to have left: the barrier may be a new one, of a
/// task that was started again.
struct join_rounds : replica_round {
  static constexpr std::string_view name = "join_rounds";
  static constexpr int arity = 1;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::no_value;
  void infer(std::span<const tensor_type> in) const;
};
/// From now on they do not.
struct leave_rounds : replica_round {
  static constexpr std::string_view name = "leave_rounds";
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::no_value;
  void infer(std::span<const tensor_type> in) const;
};
/// Waits until no round is being applied; none is granted from then on, until resume_rounds or the
/// end of this session. Not a replica.
struct pause_rounds : replica_round {
  static constexpr std::string_view name = "pause_rounds";
  static constexpr op_traits traits =
      op_traits::stateful | op_traits::effect | op_traits::no_value | op_traits::waits;
  void infer(std::span<const tensor_type> in) const;
};
struct resume_rounds : replica_round {
  static constexpr std::string_view name = "resume_rounds";
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::no_value;
  void infer(std::span<const tensor_type> in) const;
};
/// Begins the next round without the gradients of this one, whose variables are being restored.
/// Replicas whose sessions began before get aborted from then on. Not a replica.
struct restart_rounds : replica_round {
  static constexpr std::string_view name = "restart_rounds";
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::no_value;
  void infer(std::span<const tensor_type> in) const;
};
/// Yields an int64 that changes where rounds are restarted, and is 0 while the variables may be of
/// two rounds, as where a replica was lost that applied gradients. Not a replica.
struct rounds_generation : replica_round {
  static constexpr std::string_view name = "rounds_generation";
  static constexpr op_traits traits = op_traits::stateful;
  tensor_type infer(std::span<const tensor_type> in) const;
};
/// Waits until that is not 0. Not a replica.
struct await_whole_rounds : replica_round {
  static constexpr std::string_view name = "await_whole_rounds";
  static constexpr op_traits traits =
      op_traits::stateful | op_traits::effect | op_traits::no_value | op_traits::waits;
  void infer(std::span<const tensor_type> in) const;
};
/// Yields int64 (2): how many gradients a round takes now, and how many replicas have not come yet;
/// and a vector of strings, the tasks of the replicas that have left.
struct describe_round : replica_round {
  static constexpr std::string_view name = "describe_round";
  static constexpr op_traits traits = op_traits::stateful;
  std::vector<tensor_type> infer(std::span<const tensor_type> in) const;
};

/// Keeps the inputs, a gradient, for the session's replica, in place of that of an earlier step.
struct accumulate_gradient {
  static constexpr std::string_view name = "accumulate_gradient";
  static constexpr int arity = 1;
  static constexpr int max_arity = 2;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::no_value;
  std::string container, accumulator;
  static constexpr auto fields = field_list(field{"container", &accumulate_gradient::container},
                                            field{"name", &accumulate_gradient::accumulator});
  void infer(std::span<const tensor_type> in) const;
};
/// Takes the gradients of the replicas in the input, as await_replicas yields them, and yields
/// those of each: one tensor that is zeros where the replica is missing; or rows, of which there
/// are none then, and their indices.
struct take_gradients {
  static constexpr std::string_view name = "take_gradients";
  static constexpr int arity = 1;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect;
  std::string container, accumulator;
  std::int64_t needed = 1;
  dtype type = dtype::none;
  dims shape;                       ///< of the gradient, or of its rows
  bool rows = false;                ///< whether the gradient is made of rows
  dtype index_type = dtype::int64;  ///< of their indices
  static constexpr auto fields = field_list(
      field{"container", &take_gradients::container}, field{"name", &take_gradients::accumulator},
      field{"needed", &take_gradients::needed}, field{"dtype", &take_gradients::type},
      field{"shape", &take_gradients::shape}, field{"rows", &take_gradients::rows},
      field{"index_dtype", &take_gradients::index_type});
  std::vector<tensor_type> infer(std::span<const tensor_type> in) const;
};

/// All of them. They are not in the catalog: see kernels/host_tables.hpp.
using replica_operations =
    op_list<current_round, arrive_at_round, await_replicas, end_round, fail_round, join_rounds,
            leave_rounds, pause_rounds, resume_rounds, restart_rounds, rounds_generation,
            await_whole_rounds, describe_round, accumulate_gradient, take_gradients>;

}  // namespace deft::op
