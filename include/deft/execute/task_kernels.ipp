// SPDX-License-Identifier: Apache-2.0
// deft/execute/task_kernels.ipp: saving and restoring tensors; variables that have
// values; extents that a run computes.
#pragma once
#include <deft/core/safetensors.hpp>
#include <deft/execute/replica_rounds.ipp>
#include <deft/execute/task_kernels.hpp>
#include <deft/execute/team.hpp>
#include <deft/op/extents.hpp>
#include <deft/op/initialized.hpp>
#include <deft/op/save.hpp>
#include <map>

namespace deft {
namespace {

class save_kernel final : public value_kernel {
 public:
  explicit save_kernel(const value_request& r)
      : op_(decode<op::save_tensors>(r.node.attributes)), files_(r.resources.files()) {}
  bool run(value_call& c) const override {
    std::vector<any_array> held;
    for (std::size_t i = 0; i < op_.names.size(); ++i) held.push_back(c.input(i + 1));
    std::vector<detail::named_array> arrays;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < held.size(); ++i) {
      arrays.push_back({op_.names[i], &held[i]});
      bytes += static_cast<std::int64_t>(held[i].bytes());
    }
    const any_array path = c.input(0);
    detail::write_safetensors(files_, str(text_of(path), op_.suffix), std::move(arrays),
                              c.step().stop);
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
    const any_array request = c.input(0);
    const auto sources = parse(text_of(request));
    std::map<std::string_view, safetensors_file> open;
    std::vector<any_array> values;
    for (std::size_t i = 0; i < op_.names.size(); ++i) {
      const auto s = sources.find(op_.names[i]);
      if (s == sources.end())
        fail(errc::invalid_argument, "[restore_tensors] \"", op_.names[i], "\" is not asked for");
      const auto [path, name] = s->second;
      auto file = open.find(path);
      if (file == open.end())
        file = open.try_emplace(path, safetensors_file(std::string(path), files_)).first;
      values.push_back(file->second.read(std::string(name), c.step().stop, on_team));
      check(values.back(), i, path);
    }
    for (std::size_t i = 0; i < values.size(); ++i) c.output(i, std::move(values[i]));
    return true;
  }

 private:
  using source = std::pair<std::string_view, std::string_view>;  ///< file, name

  static void on_team(std::int64_t n, const std::function<void(std::int64_t)>& f) {
    parallel_chunks(n, f);
  }
  static std::map<std::string_view, source> parse(std::string_view text) {
    std::map<std::string_view, source> all;
    const auto line = [&text] {
      const auto end = text.find('\n');
      if (end == text.npos)
        fail(errc::invalid_argument, "[restore_tensors] the request ends within a line");
      const std::string_view l = text.substr(0, end);
      text.remove_prefix(end + 1);
      return l;
    };
    while (!text.empty()) {
      const std::string_view tensor = line(), file = line(), name = line();
      all[tensor] = {file, name};
    }
    return all;
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

class is_initialized_kernel final : public value_kernel {
 public:
  explicit is_initialized_kernel(const value_request& r)
      : variable_(variable_of<op::is_initialized>(r)) {}
  bool run(value_call& c) const override {
    std::unique_lock lock(variable_->guard);
    const bool valid = variable_->value.valid();
    lock.unlock();
    c.output(0, any_array::scalar(valid));
    return true;
  }

 private:
  std::shared_ptr<variable_slot> variable_;
};

class await_initialized_kernel final : public value_kernel {
 public:
  explicit await_initialized_kernel(const value_request& r)
      : variable_(variable_of<op::await_initialized>(r)) {}
  bool run(value_call& c) const override {
    std::lock_guard lock(variable_->guard);
    if (variable_->value.valid()) return true;
    variable_->waiting.push_back(c.make_waker());
    return false;
  }

 private:
  std::shared_ptr<variable_slot> variable_;
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
  static constexpr dtype_set text{dtype::uint8}, sizes{dtype::int64},
      any = all_dtypes | dtype_set{dtype::none};
  static constexpr kernel_entry table[] = {
      {op::save_tensors::name, text, nullptr, &make_task_kernel<save_kernel>},
      {op::restore_tensors::name, text, nullptr, &make_task_kernel<restore_kernel>},
      {op::extents::name, sizes, nullptr, &make_task_kernel<extents_kernel>},
      {op::is_initialized::name, any, nullptr, &make_task_kernel<is_initialized_kernel>},
      {op::await_initialized::name, any, nullptr, &make_task_kernel<await_initialized_kernel>},
      {op::current_round::name, any, nullptr, &make_task_kernel<current_kernel>},
      {op::arrive_at_round::name, any, nullptr, &make_task_kernel<arrive_kernel>},
      {op::await_replicas::name, any, nullptr, &make_task_kernel<await_kernel>},
      {op::end_round::name, any, nullptr, &make_task_kernel<end_kernel>},
      {op::fail_round::name, any, nullptr, &make_task_kernel<fail_kernel>},
      {op::join_rounds::name, any, nullptr, &make_task_kernel<join_kernel>},
      {op::leave_rounds::name, any, nullptr, &make_task_kernel<leave_kernel>},
      {op::describe_round::name, any, nullptr, &make_task_kernel<describe_kernel>},
      {op::accumulate_gradient::name, any, nullptr, &make_task_kernel<accumulate_kernel>},
      {op::take_gradients::name, any, nullptr, &make_task_kernel<take_kernel>},
  };
  return table;
}

}  // namespace deft
