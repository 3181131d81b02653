// SPDX-License-Identifier: Apache-2.0
// deft/execute/task_kernels.ipp: saving and restoring tensors; variables that have
// values; extents that a run computes.
#pragma once
#include <deft/core/failure.hpp>
#include <deft/core/safetensors.hpp>
#include <deft/kernels/device.hpp>
#include <deft/kernels/host_tables.hpp>
#include <deft/kernels/team.hpp>
#include <deft/op/extents.hpp>
#include <deft/op/initialized.hpp>
#include <deft/op/save.hpp>
#include <map>

namespace deft::ext {
namespace {

/// Copies to arrays that must live until they are done: the destructor waits, too.
class running_copies {
 public:
  explicit running_copies(std::size_t most) { all_.reserve(most); }
  ~running_copies() {
    for (const auto& e : all_) static_cast<void>(failure_of([&] { e->synchronize(); }));
  }
  running_copies(const running_copies&) = delete;

  /// Not null if it runs. Does not throw: the device may be writing already.
  void add(event_ptr e) noexcept {
    if (e) all_.push_back(std::move(e));
  }
  void wait() {
    for (const auto& e : all_) e->synchronize();
    all_.clear();
  }

 private:
  std::vector<event_ptr> all_;
};

/// The values of variables at one moment: no update comes between them. They are not copied, as an
/// update writes in place only where nobody else holds the elements.
class snapshot_kernel final : public value_kernel {
 public:
  explicit snapshot_kernel(const value_request& r) : devices_(r.devices) {
    const auto o = decode<op::snapshot_variables>(r.node.attributes);
    const std::vector<tensor_type> types = o.outputs();
    for (std::size_t i = 0; i < types.size(); ++i) {
      variables_.push_back(
          find_variable(r.resources, {"variable", o.containers[i], o.variables[i]}, types[i]));
      in_order_.push_back(variables_.back().get());
    }
    locked_variables::sort(in_order_);
  }
  bool run(value_call& c) const override {
    std::vector<any_array> values;
    {
      const locked_variables lock(in_order_);
      for (const auto& v : variables_) {
        if (v->restoring) fail(errc::aborted, "variable \"", v->name, "\" is being restored");
        if (!v->value.valid())
          fail(errc::failed_precondition, error_reason::uninitialized, "variable \"", v->name,
               "\" is not initialized");
        values.push_back(v->value);
      }
    }
    running_copies copies(values.size());
    for (auto& v : values) v = on_host(std::move(v), copies);
    copies.wait();
    for (std::size_t i = 0; i < values.size(); ++i) c.output(i, std::move(values[i]));
    return true;
  }
  bool is_long() const override { return true; }

 private:
  any_array on_host(any_array a, running_copies& copies) const {
    for (const auto& d : devices_)
      if (!d->space().on_host() && a.storage().home() == &d->space()) {
        any_array host(a.type(), a.shape());
        copies.add(d->copy_out(host.mutable_raw(), a.raw(), a.bytes(), a.storage()));
        return host;
      }
    return a;
  }

  std::span<const std::unique_ptr<device_runtime>> devices_;
  std::vector<std::shared_ptr<variable_slot>> variables_;
  std::vector<variable_slot*> in_order_;  ///< of their locks
};

class save_kernel final : public value_kernel {
 public:
  explicit save_kernel(const value_request& r)
      : op_(decode<op::save_tensors>(r.node.attributes)), files_(r.resources.files()) {}
  bool is_long() const override { return true; }
  bool run(value_call& c) const override {
    std::vector<any_array> held;
    for (std::size_t i = 0; i < op_.names.size(); ++i) held.push_back(c.input(i + 1));
    std::vector<detail::named_array> arrays;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < held.size(); ++i) {
      arrays.push_back({op_.names[i], &held[i]});
      bytes += static_cast<std::int64_t>(held[i].bytes());
    }
    detail::write_safetensors(files_, str(c.input(0).item<std::string>(), op_.suffix),
                              std::move(arrays), c.step().stop);
    c.output(0, any_array::scalar(bytes));
    return true;
  }

 private:
  op::save_tensors op_;
  const file_roots& files_;
};

class restore_kernel final : public value_kernel {
 public:
  explicit restore_kernel(const value_request& r)
      : op_(decode<op::restore_tensors>(r.node.attributes)),
        types_(op_.outputs()),
        files_(r.resources.files()) {}
  bool run(value_call& c) const override {
    const any_array files = c.input(0), names = c.input(1);
    std::map<std::string_view, safetensors_file> open;
    std::vector<any_array> values;
    for (std::size_t i = 0; i < op_.names.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      const std::string_view path = files.strings()[number], name = names.strings()[number];
      auto file = open.find(path);
      if (file == open.end())
        file = open.try_emplace(path, safetensors_file(std::string(path), files_)).first;
      values.push_back(file->second.read(std::string(name), c.step().stop, on_team));
      check(values.back(), i, path);
    }
    for (std::size_t i = 0; i < values.size(); ++i) c.output(i, std::move(values[i]));
    return true;
  }
  bool is_long() const override { return true; }

 private:
  static void on_team(std::int64_t n, const std::function<void(std::int64_t)>& f) {
    parallel_chunks(n, f);
  }
  void check(const any_array& value, std::size_t i, std::string_view path) const {
    if (value.type() == types_[i].type && fits(types_[i].shape, value.shape())) return;
    fail(errc::invalid_argument, "[restore_tensors] \"", op_.names[i], "\" is ", types_[i],
         ", and in ", path, " it is ", value.type(), value.shape());
  }

  op::restore_tensors op_;
  std::vector<tensor_type> types_;
  const file_roots& files_;
};

template <class Op>
std::shared_ptr<variable_slot> variable_of(const value_request& r) {
  const auto o = decode<Op>(r.node.attributes);
  return find_variable(r.resources, {"variable", o.container, o.variable}, {o.shape, o.type});
}

/// What asks or tells something about one variable, whose guard it holds.
template <class Op>
class about_variable_kernel : public value_kernel {
 public:
  explicit about_variable_kernel(const value_request& r) : variable_(variable_of<Op>(r)) {}

 protected:
  std::shared_ptr<variable_slot> variable_;
};

struct is_initialized_kernel final : about_variable_kernel<op::is_initialized> {
  using about_variable_kernel::about_variable_kernel;
  bool run(value_call& c) const override {
    std::unique_lock lock(variable_->guard);
    const bool has_value = variable_->has_value();
    lock.unlock();
    c.output(0, any_array::scalar(has_value));
    return true;
  }
};

struct await_initialized_kernel final : about_variable_kernel<op::await_initialized> {
  using about_variable_kernel::about_variable_kernel;
  bool run(value_call& c) const override {
    std::lock_guard lock(variable_->guard);
    if (variable_->has_value()) return true;
    return c.wait_in(variable_->waiting);
  }
};

struct generation_kernel final : about_variable_kernel<op::value_generation> {
  using about_variable_kernel::about_variable_kernel;
  bool run(value_call& c) const override {
    std::unique_lock lock(variable_->guard);
    const std::int64_t generation = variable_->has_value() ? variable_->generation : 0;
    lock.unlock();
    c.output(0, any_array::scalar(generation));
    return true;
  }
};

struct begin_restoring_kernel final : about_variable_kernel<op::begin_restoring> {
  using about_variable_kernel::about_variable_kernel;
  bool run(value_call&) const override {
    any_array dropped;  // freed without the lock
    std::lock_guard lock(variable_->guard);
    dropped = std::exchange(variable_->value, any_array());
    variable_->device = nullptr;
    variable_->restoring = true;
    variable_->generation = variable_slot::next_generation();
    return true;
  }
};

struct end_restoring_kernel final : about_variable_kernel<op::end_restoring> {
  using about_variable_kernel::about_variable_kernel;
  bool run(value_call&) const override {
    {
      std::lock_guard lock(variable_->guard);
      variable_->restoring = false;
    }
    variable_->waiting.wake_all();
    return true;
  }
};

class extents_kernel final : public value_kernel {
 public:
  explicit extents_kernel(const value_request& r) : op_(decode<op::extents>(r.node.attributes)) {}
  bool run(value_call& c) const override {
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < c.inputs(); ++i) {
      const any_array some = c.input(i);
      const std::int64_t* const first = some.data<std::int64_t>();
      all.insert(all.end(), first, first + some.elements());
    }
    c.output(0, any_array(op_.type, op_.with(all)));
    return true;
  }

 private:
  op::extents op_;
};

template <class Kernel>
value_kernel_ptr make_task_kernel(const value_request& r) {
  return std::make_unique<Kernel>(r);
}

}  // namespace

kernel_table task_kernels() {
  static constexpr dtype_set text{dtype::string}, sizes{dtype::int64},
      any = all_dtypes | dtype_set{dtype::none};
  static constexpr kernel_entry table[] = {
      {op::snapshot_variables::name, any, nullptr, &make_task_kernel<snapshot_kernel>},
      {op::save_tensors::name, text, nullptr, &make_task_kernel<save_kernel>},
      {op::restore_tensors::name, text, nullptr, &make_task_kernel<restore_kernel>},
      {op::extents::name, sizes, nullptr, &make_task_kernel<extents_kernel>},
      {op::is_initialized::name, any, nullptr, &make_task_kernel<is_initialized_kernel>},
      {op::await_initialized::name, any, nullptr, &make_task_kernel<await_initialized_kernel>},
      {op::value_generation::name, any, nullptr, &make_task_kernel<generation_kernel>},
      {op::begin_restoring::name, any, nullptr, &make_task_kernel<begin_restoring_kernel>},
      {op::end_restoring::name, any, nullptr, &make_task_kernel<end_restoring_kernel>},
  };
  return table;
}

}  // namespace deft::ext
