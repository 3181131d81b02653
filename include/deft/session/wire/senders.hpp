// SPDX-License-Identifier: Apache-2.0
// deft/session/wire/senders.hpp: who may send which message to a task.
#pragma once
#include <deft/session/wire/messages.hpp>
#include <string_view>

namespace deft::ext::wire {

/// Who may send a message. A session that the task does not know belongs to nobody: its messages
/// have no effect, or an answer that says so.
enum class sender {
  anyone,      ///< who knows the cluster's secret or has a certificate
  task,        ///< a task of the cluster
  master,      ///< the master of the session: who registered its first part, on any connection
  step_tasks,  ///< tasks of the cluster, and the master of the session
  client,      ///< the client that opened the session, on that connection, and tasks
};

/// A kind of message to a task.
struct message_rule {
  kind number;
  std::string_view name;
  sender may_send;
};

/// All kinds that a task receives.
inline constexpr message_rule message_rules[] = {
    {kind::register_part, "register_part", sender::master},
    {kind::run_part, "run_part", sender::master},
    {kind::tensors, "tensors", sender::step_tasks},
    {kind::cancel_step, "cancel_step", sender::master},
    {kind::resolve_step, "resolve_step", sender::master},
    {kind::drop_part, "drop_part", sender::master},
    {kind::drop_session, "drop_session", sender::master},
    {kind::devices, "devices", sender::anyone},
    {kind::reset, "reset", sender::task},
    {kind::open_session, "open_session", sender::anyone},
    {kind::make_plan, "make_plan", sender::client},
    {kind::describe_plan, "describe_plan", sender::client},
    {kind::run_plan, "run_plan", sender::client},
    {kind::cancel_run, "cancel_run", sender::client},
    {kind::resolve_run, "resolve_run", sender::client},
    {kind::drop_plan, "drop_plan", sender::client},
    {kind::cluster_devices, "cluster_devices", sender::client},
    {kind::reset_cluster, "reset_cluster", sender::client},
    {kind::close_session, "close_session", sender::client},
    {kind::wait_signal, "wait_signal", sender::task},
    {kind::set_signal, "set_signal", sender::task},
    {kind::done, "done", sender::task},  // of the sender itself
};

/// The rule for a kind. Does not compile for one that is not in the list.
consteval const message_rule& rule_of(kind k) {
  for (const auto& r : message_rules)
    if (r.number == k) return r;
  throw "this kind of message has no rule";
}

}  // namespace deft::ext::wire
