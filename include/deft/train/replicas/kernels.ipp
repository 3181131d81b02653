// SPDX-License-Identifier: Apache-2.0
// deft/train/replicas/kernels.ipp: the kernels that take part in rounds of replicas, and their
// table.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/kernels/host_tables.hpp>
#include <deft/kernels/user_op_hook.hpp>
#include <deft/train/replicas/accumulator.hpp>
#include <deft/train/replicas/operations.hpp>
#include <deft/train/replicas/rounds.hpp>

namespace deft::ext {
namespace {

/// The barrier that an operation names, made if it is not there.
std::shared_ptr<replica_barrier> barrier_of(const value_request& r, const op::replica_round& o) {
  return r.resources.get<replica_barrier>({"replica_barrier", o.container, o.barrier}, [&] {
    return std::make_shared<replica_barrier>(o.needed, o.total);
  });
}

/// Of a session that is a member.
template <class Op>
class round_kernel : public value_kernel {
 public:
  explicit round_kernel(const value_request& r)
      : op_(decode<Op>(r.node.attributes)),
        member_(barrier_of(r, op_)->join(r.session, r.master, op_.needed, op_.total)) {}

 protected:
  replica_barrier& barrier() const { return member_->barrier(); }

  const Op op_;
  const std::shared_ptr<replica_barrier::membership> member_;
};

struct current_kernel final : round_kernel<op::current_round> {
  using round_kernel::round_kernel;
  bool run(value_call& c) const override {
    c.output(0, any_array::scalar(barrier().current()));
    return true;
  }
};

struct arrive_kernel final : round_kernel<op::arrive_at_round> {
  using round_kernel::round_kernel;
  bool run(value_call& c) const override {
    const any_array begun = c.input(0);
    const auto counts = barrier().arrive(*member_, c.step().step, *begun.data<std::int64_t>(),
                                         c.ticket(), c.make_waker());
    if (!counts && !c.state().has_value())
      c.state() = std::make_shared<const arrival>(member_, c.step().step);
    if (counts) c.output(0, any_array::scalar(*counts));
    return counts.has_value();
  }

 private:
  /// Of a run that waits.
  class arrival {
   public:
    arrival(std::shared_ptr<replica_barrier::membership> m, std::uint64_t step)
        : member_(std::move(m)), step_(step) {}
    ~arrival() { member_->barrier().step_ended(*member_, step_); }
    arrival(const arrival&) = delete;

   private:
    const std::shared_ptr<replica_barrier::membership> member_;
    const std::uint64_t step_;
  };
};

struct await_kernel final : round_kernel<op::await_replicas> {
  using round_kernel::round_kernel;
  bool run(value_call& c) const override {
    const auto sessions = barrier().await(*member_, c.ticket(), c.make_waker());
    if (sessions.empty()) return false;
    any_array ids(dtype::int64, dims{op_.needed});
    std::fill_n(ids.mutable_data<std::int64_t>(), op_.needed, -1);
    std::ranges::transform(sessions, ids.mutable_data<std::int64_t>(),
                           [](std::uint64_t s) { return static_cast<std::int64_t>(s); });
    c.output(0, std::move(ids));
    c.output(1, any_array::scalar(1 / static_cast<double>(sessions.size())));
    return true;
  }
};

struct end_kernel final : round_kernel<op::end_round> {
  using round_kernel::round_kernel;
  bool run(value_call&) const override {
    barrier().end(*member_);
    return true;
  }
};

struct fail_kernel final : round_kernel<op::fail_round> {
  using round_kernel::round_kernel;
  bool run(value_call& c) const override {
    const auto code = c.input(0).item<std::int32_t>();
    if (code < 1 || code > static_cast<std::int32_t>(errc::unauthenticated))
      deft::ext::fail(errc::invalid_argument, "[fail_round] ", code,
                      " is not the code of an error");
    barrier().fail(*member_, error(static_cast<errc>(code), c.input(1).item<std::string>()),
                   c.input(2).item<bool>());
    return true;
  }
};

struct join_kernel final : round_kernel<op::join_rounds> {
  using round_kernel::round_kernel;
  bool run(value_call& c) const override {
    const any_array tasks = c.input(0);
    const string_span left = tasks.strings();
    barrier().take_part(*member_, std::vector<std::string>(left.begin(), left.end()));
    return true;
  }
};

struct leave_kernel final : round_kernel<op::leave_rounds> {
  using round_kernel::round_kernel;
  bool run(value_call&) const override {
    barrier().leave(*member_);
    return true;
  }
};

struct describe_kernel final : round_kernel<op::describe_round> {
  using round_kernel::round_kernel;
  bool run(value_call& c) const override {
    const auto state = barrier().describe_state();
    any_array numbers(dtype::int64, dims{2});
    numbers.mutable_data<std::int64_t>()[0] = state.needed;
    numbers.mutable_data<std::int64_t>()[1] = state.awaited;
    c.output(0, std::move(numbers));
    c.output(1, ndarray<std::string, dyn>(state.left));
    return true;
  }
};

/// Of a session that need not be a replica.
template <class Op>
class pause_of_rounds : public value_kernel {
 public:
  explicit pause_of_rounds(const value_request& r)
      : barrier_(barrier_of(r, decode<Op>(r.node.attributes))),
        pause_(barrier_->pause_of(r.session)) {}

 protected:
  const std::shared_ptr<replica_barrier> barrier_;
  const std::shared_ptr<replica_barrier::pause> pause_;
};
struct pause_kernel final : pause_of_rounds<op::pause_rounds> {
  using pause_of_rounds::pause_of_rounds;
  bool run(value_call& c) const override {
    return pause_->begin(c.ticket(), c.make_waker(), c.step().step);
  }
};
struct resume_kernel final : pause_of_rounds<op::resume_rounds> {
  using pause_of_rounds::pause_of_rounds;
  bool run(value_call& c) const override {
    pause_->end(c.step().step);
    return true;
  }
};

struct restart_kernel final : pause_of_rounds<op::restart_rounds> {
  using pause_of_rounds::pause_of_rounds;
  bool run(value_call&) const override {
    barrier_->restart();
    return true;
  }
};

struct rounds_generation_kernel final : pause_of_rounds<op::rounds_generation> {
  using pause_of_rounds::pause_of_rounds;
  bool run(value_call& c) const override {
    c.output(0, any_array::scalar(barrier_->generation()));
    return true;
  }
};

struct await_whole_kernel final : pause_of_rounds<op::await_whole_rounds> {
  using pause_of_rounds::pause_of_rounds;
  bool run(value_call& c) const override { return barrier_->is_whole(c.ticket(), c.make_waker()); }
};

/// The accumulator that an operation names, made if it is not there.
template <class Op>
std::shared_ptr<accumulator> accumulator_of(const value_request& r, const Op& o) {
  return r.resources.get<accumulator>({"gradient_accumulator", o.container, o.accumulator},
                                      [] { return std::make_shared<accumulator>(); });
}

class accumulate_kernel final : public value_kernel {
 public:
  explicit accumulate_kernel(const value_request& r)
      : gradients_(accumulator_of(r, decode<op::accumulate_gradient>(r.node.attributes))),
        membership_(gradients_->join(r.session)) {}
  bool run(value_call& c) const override {
    std::vector<any_array> gradient;
    for (std::size_t i = 0; i < c.inputs(); ++i) gradient.push_back(c.input(i));
    gradients_->apply(membership_, c.step().step, std::move(gradient));
    return true;
  }

 private:
  const std::shared_ptr<accumulator> gradients_;
  const accumulator::membership membership_;
};

class take_kernel final : public value_kernel {
 public:
  explicit take_kernel(const value_request& r)
      : op_(decode<op::take_gradients>(r.node.attributes)), gradients_(accumulator_of(r, op_)) {
    if (!op_.rows) return;
    dims none = op_.shape;
    none[0] = 0;
    no_rows_ = {any_array(op_.type, none), any_array(op_.index_type, dims{0})};
  }
  bool run(value_call& c) const override {
    const any_array sessions = c.input(0);
    const std::size_t each = op_.rows ? 2 : 1;
    const auto ids = sessions.span<std::int64_t>();
    std::vector<std::uint64_t> there;
    for (const std::int64_t id : ids)
      if (id != -1) there.push_back(static_cast<std::uint64_t>(id));
    const auto all = gradients_->take(there);
    if (!all) fail(errc::aborted, "[sync_replicas] the gradient of a replica is gone");
    auto next = all->begin();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      // A missing one has the shape of another.
      const std::vector<any_array> gradient = ids[i] == -1 ? missing(*all) : *next++;
      if (gradient.size() != each) mismatch();
      for (std::size_t k = 0; k < each; ++k) c.output(i * each + k, gradient[k]);
    }
    return true;
  }

 private:
  [[noreturn]] void mismatch() const {
    fail(errc::invalid_argument, "[sync_replicas] replicas disagree whether the gradient of \"",
         op_.accumulator, "\" is made of rows");
  }
  std::vector<any_array> missing(const std::vector<std::vector<any_array>>& others) const {
    if (op_.rows) return no_rows_;
    if (others.empty()) mismatch();
    any_array zeros(op_.type, others[0].at(0).shape());
    std::memset(zeros.mutable_raw(), 0, zeros.bytes());
    return {zeros};
  }

  const op::take_gradients op_;
  const std::shared_ptr<accumulator> gradients_;
  std::vector<any_array> no_rows_;
};

/// The row of an operation, which takes any dtype.
template <class Op, class Kernel>
constexpr kernel_entry replica_entry{
    Op::name, all_dtypes | dtype_set{dtype::none}, nullptr,
    [](const value_request& r) -> value_kernel_ptr { return std::make_unique<Kernel>(r); }};

}  // namespace

kernel_table replica_kernels() {
  add_operations(op::replica_operations());
  static constexpr kernel_entry table[] = {
      replica_entry<op::current_round, current_kernel>,
      replica_entry<op::arrive_at_round, arrive_kernel>,
      replica_entry<op::await_replicas, await_kernel>,
      replica_entry<op::end_round, end_kernel>,
      replica_entry<op::fail_round, fail_kernel>,
      replica_entry<op::join_rounds, join_kernel>,
      replica_entry<op::leave_rounds, leave_kernel>,
      replica_entry<op::pause_rounds, pause_kernel>,
      replica_entry<op::resume_rounds, resume_kernel>,
      replica_entry<op::restart_rounds, restart_kernel>,
      replica_entry<op::rounds_generation, rounds_generation_kernel>,
      replica_entry<op::await_whole_rounds, await_whole_kernel>,
      replica_entry<op::describe_round, describe_kernel>,
      replica_entry<op::accumulate_gradient, accumulate_kernel>,
      replica_entry<op::take_gradients, take_kernel>,
  };
  return table;
}

}  // namespace deft::ext
