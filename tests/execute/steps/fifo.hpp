// SPDX-License-Identifier: Apache-2.0
// tests/execute/steps/fifo.hpp: a resource and kernels that wait: a first-in, first-out queue. This
// is all that it takes.
#pragma once
#include <deft/deft.hpp>
#include <deft/kernels/wait_list.hpp>
#include <deque>

namespace testing {

using namespace deft;
using namespace deft::ext;

/// A queue of at most two values.
class fifo final : public resource {
 public:
  bool push(value_call& c) {
    wake_at_end woken(consumers_);
    std::lock_guard lock(guard_);
    if (values_.size() == 2) return c.wait_in(producers_);
    values_.push_back(c.input(0));
    woken.next();
    return true;
  }
  bool pop(value_call& c) {
    wake_at_end woken(producers_);
    std::lock_guard lock(guard_);
    if (values_.empty()) return c.wait_in(consumers_);
    c.output(0, std::move(values_.front()));
    values_.pop_front();
    woken.next();
    return true;
  }
  void clear() override {
    wake_at_end woken(producers_);
    std::lock_guard lock(guard_);
    values_.clear();
    woken.all();
  }
  std::size_t bytes() const override { return 0; }
  std::string describe() const override { return "fifo"; }

 private:
  std::mutex guard_;
  std::deque<any_array> values_;
  wait_list producers_, consumers_;
};

struct enqueue {
  static constexpr std::string_view name = "test_enqueue";
  static constexpr int arity = 1;
  static constexpr op_traits traits =
      op_traits::stateful | op_traits::effect | op_traits::no_value | op_traits::waits;
  std::string queue;
  static constexpr auto fields = field_list(field{"queue", &enqueue::queue});
  resource_ref resource() const { return {{"fifo", "", queue}, {}}; }
  void infer(std::span<const tensor_type>) const {}
  static value_kernel_ptr make_value(const value_request& r);
};
struct dequeue {
  static constexpr std::string_view name = "test_dequeue";
  static constexpr int arity = 0;
  static constexpr op_traits traits = op_traits::stateful | op_traits::effect | op_traits::waits;
  std::string queue;
  static constexpr auto fields = field_list(field{"queue", &dequeue::queue});
  resource_ref resource() const { return {{"fifo", "", queue}, {}}; }
  tensor_type infer(std::span<const tensor_type>) const { return {dims{dyn}, dtype::float32}; }
  static value_kernel_ptr make_value(const value_request& r);
};

/// Calls `step` of the node's queue.
struct queue_kernel final : value_kernel {
  queue_kernel(const value_request& r, bool (fifo::*s)(value_call&))
      : queue(r.resources.get<fifo>(r.node.op->resources(r.node.attributes).front().key,
                                    [] { return std::make_shared<fifo>(); })),
        step(s) {}
  bool run(value_call& c) const override { return (queue.get()->*step)(c); }
  const std::shared_ptr<fifo> queue;
  bool (fifo::*const step)(value_call&);
};
inline value_kernel_ptr enqueue::make_value(const value_request& r) {
  return std::make_unique<queue_kernel>(r, &fifo::push);
}
inline value_kernel_ptr dequeue::make_value(const value_request& r) {
  return std::make_unique<queue_kernel>(r, &fifo::pop);
}

inline operation push(const char* queue, const any_tensor& value) {
  return operation(make_node(enqueue{queue}, here(), value).handle().node);
}
inline any_tensor pop(const char* queue) { return make_node(dequeue{queue}, here()); }

}  // namespace testing
