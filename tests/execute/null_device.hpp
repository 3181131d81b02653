// SPDX-License-Identifier: Apache-2.0
// tests/execute/null_device.hpp: the smallest device with separate memory: it checks shapes,
// counts the bytes that are transferred, and computes as the processor does.
#pragma once
#include <atomic>
#include <cstdlib>
#include <deft/kernels/cpu/device.hpp>
#include <deft/op/catalog.hpp>

namespace testing {

/// Bytes transferred, kernels run, and blocks in use, of all null devices.
struct null_counts {
  std::atomic<std::size_t> in{0}, out{0}, between{0}, launches{0}, recorded{0}, synchronized{0},
      blocks{0};
  void reset() { in = out = between = launches = recorded = synchronized = 0; }
};
inline null_counts& null_traffic() {
  static auto& c = *new null_counts;
  return c;
}

/// Addresses that the processor may add to but not access: real ones with a bit flipped.
class null_memory final : public deft::ext::memory {
 public:
  deft::ext::block* allocate(std::size_t bytes) override {
    auto* b = new deft::ext::block;
    const std::size_t all = (bytes + guard_bytes + 63) / 64 * 64;
    auto* raw = static_cast<char*>(std::aligned_alloc(64, all));
    std::memset(raw, 0, bytes);
    std::memset(raw + bytes, guard_mark, guard_bytes);
    b->data = hidden(raw);
    b->capacity = bytes;
    b->home = this;
    ++null_traffic().blocks;
    return b;
  }
  void release(deft::ext::block* b) noexcept override {
    auto* raw = static_cast<char*>(hidden(b->data));
    // Nothing was written past its end.
    for (std::size_t i = 0; i < guard_bytes; ++i)
      if (raw[b->capacity + i] != guard_mark) std::abort();
    std::free(raw);
    delete b;
    --null_traffic().blocks;
  }
  bool on_host() const override { return false; }

  static constexpr std::size_t guard_bytes = 64;
  static constexpr char guard_mark = 0x5a;

  /// Converts in both directions.
  static void* hidden(const void* p) {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(p) ^ hiding);
  }
  static bool is_hidden(const void* p) {
    return (reinterpret_cast<std::uintptr_t>(p) & hiding) != 0;
  }

 private:
  static constexpr std::uintptr_t hiding = std::uintptr_t{1} << 62;
};

/// The processor's kernel, on hidden addresses.
class null_kernel final : public deft::ext::kernel {
 public:
  explicit null_kernel(deft::ext::kernel_ptr real, const deft::ext::node_def& n)
      : real_(std::move(real)) {
    node_.op = n.op;
    node_.attributes = n.attributes;
  }

  void prepare(std::span<const deft::ext::tensor_type> in,
               std::span<const deft::ext::tensor_type> out) override {
    // An update has the variable before its other inputs.
    const bool update = node_.op->role == deft::op_role::update;
    std::vector<deft::ext::tensor_type> expected;
    deft::ext::infer_types(*node_.op, {in.subspan(update ? out.size() : 0), node_.attributes},
                           expected);
    if (expected.size() != out.size())
      deft::ext::fail(deft::errc::internal, "[null] outputs differ");
    for (std::size_t i = 0; i < out.size(); ++i)
      if (!out[i].shape.is_static() || !deft::ext::may_equal(out[i].shape, expected[i].shape))
        deft::ext::fail(deft::errc::internal, "[null] ", out[i], " is not ", expected[i]);
    ins_ = in.size(), outs_ = out.size();
    real_->prepare(in, out);
  }
  void run(const deft::ext::kernel_call& c) override {
    ++null_traffic().launches;
    const void* in[16];
    void* out[deft::ext::program::most_outputs];
    for (std::size_t i = 0; i < ins_; ++i) in[i] = null_memory::hidden(c.in[i]);
    for (std::size_t i = 0; i < outs_; ++i)
      out[i] = c.out[i] ? null_memory::hidden(c.out[i]) : nullptr;
    if (real_->scratch() && !null_memory::is_hidden(c.scratch))
      deft::ext::fail(deft::errc::internal, "[null] scratch memory is not on the device");
    void* const scratch = c.scratch ? null_memory::hidden(c.scratch) : nullptr;
    deft::ext::step_context step = *c.step;
    step.draw = drawn(c);
    real_->run({in, out, &step, scratch});
  }
  std::size_t scratch() const override { return real_->scratch(); }

 private:
  /// The counter of random operations, read from the device; a fixed value for other nodes.
  std::uint64_t drawn(const deft::ext::kernel_call& c) const {
    std::uint64_t draw = 0xbad;
    if (!node_.op->is(deft::ext::op_traits::stateful) || node_.op->role != deft::op_role::compute)
      return draw;
    if (!null_memory::is_hidden(c.draw_word))
      deft::ext::fail(deft::errc::internal, "[null] the counter of random operations is not there");
    std::memcpy(&draw, null_memory::hidden(c.draw_word), sizeof draw);
    return draw;
  }

  deft::ext::kernel_ptr real_;
  deft::ext::node_def node_;
  std::size_t ins_ = 0, outs_ = 0;
};

/// Work of this device is done immediately; waits for it are counted.
class null_event final : public deft::ext::device_event {
 public:
  bool done() const override { return true; }
  void when_done(std::function<void()> f) override { f(); }
  void synchronize() override { ++null_traffic().synchronized; }
};

/// A test device: the processor's kernels, on hidden addresses.
class hidden_device : public deft::ext::device_runtime {
 public:
  const deft::ext::kernel_entry* find_kernel(std::string_view op) const override {
    const deft::ext::kernel_entry* entry = deft::ext::find_cpu_kernel(op);
    return entry && entry->make ? entry : nullptr;
  }
  deft::ext::kernel_ptr make_kernel(const deft::ext::node_def& n,
                                    std::span<const deft::ext::tensor_type> in) override {
    const deft::ext::kernel_entry* entry = find_kernel(n.op->name);
    return entry ? std::make_unique<null_kernel>(entry->make(n, in), n) : nullptr;
  }

 protected:
  /// `/type:number` of a task, with all kernels but that of one operation.
  hidden_device(const deft::device_name& task, std::string type, int number,
                std::string_view without = {})
      : device_runtime(described(task, std::move(type), number, without)) {}

 private:
  static deft::device_info described(const deft::device_name& task, std::string type, int number,
                                     std::string_view without) {
    auto kernels = std::make_shared<deft::ext::kernel_set>(
        *deft::ext::announce(deft::ext::cpu_kernel_tables()));
    kernels->remove(without);
    deft::device_info info = deft::ext::describe(task, type, number);
    info.description = std::move(type);
    info.kernels = std::move(kernels);
    return info;
  }
};

class null_device : public hidden_device {
 public:
  null_device(const deft::device_name& task, int number, std::string type = "null")
      : hidden_device(task, std::move(type), number, "matmul") {}

  deft::ext::memory& space() override {
    static auto& m = *new null_memory;
    return m;
  }
  deft::ext::arena_pool& arenas() override { return arenas_; }
  deft::ext::event_ptr copy_in(void* to, const void* from, std::size_t bytes,
                               deft::ext::buffer) override {
    null_traffic().in += bytes;
    std::memcpy(null_memory::hidden(to), from, bytes);
    return nullptr;
  }
  deft::ext::event_ptr copy_out(void* to, const void* from, std::size_t bytes,
                                deft::ext::buffer) override {
    null_traffic().out += bytes;
    std::memcpy(to, null_memory::hidden(from), bytes);
    return nullptr;
  }
  bool copy_between(void* to, device_runtime& source, const void* from, std::size_t bytes,
                    deft::ext::buffer, std::span<const deft::ext::event_ptr>,
                    deft::ext::event_ptr&) override {
    if (source.info().name->type != info().name->type) return false;
    null_traffic().between += bytes;
    std::memcpy(null_memory::hidden(to), null_memory::hidden(from), bytes);
    return true;
  }
  void copy_within(void* to, const void* from, std::size_t bytes,
                   deft::ext::device_step*) override {
    std::memcpy(null_memory::hidden(to), null_memory::hidden(from), bytes);
  }
  deft::ext::event_ptr record() override {
    ++null_traffic().recorded;
    return std::make_shared<null_event>();
  }

 private:
  deft::ext::arena_pool arenas_{space()};
};

/// Of each task two, which only explicit requests use.
inline constexpr deft::ext::device_kind null_kind{
    .type = "null", .make = [](const deft::device_name& task, const deft::ext::device_settings&) {
      std::vector<std::unique_ptr<deft::ext::device_runtime>> all;
      for (int i = 0; i < 2; ++i) all.push_back(std::make_unique<null_device>(task, i));
      return all;
    }};

}  // namespace testing
