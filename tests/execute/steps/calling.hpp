// SPDX-License-Identifier: Apache-2.0
// tests/execute/steps/calling.hpp: an operation that calls a function again and again, and how a
// test writes its body. This is all that such an operation takes.
#pragma once
#include <deft/deft.hpp>
#include <deft/graph/function.hpp>
#include <vector>

namespace testing {

/// Calls `body` `times` times: each time with what it gave before, and with what it captures.
struct repeat {
  static constexpr std::string_view name = "test_repeat";
  static constexpr int arity = 0, max_arity = -1;
  static constexpr deft::op_role role = deft::op_role::call;
  std::int64_t times = 1;
  deft::ext::function_ref body;
  static constexpr auto fields = deft::ext::field_list(deft::ext::field{"times", &repeat::times},
                                                       deft::ext::field{"body", &repeat::body});
  std::vector<deft::ext::tensor_type> infer(std::span<const deft::ext::tensor_type> in) const {
    return deft::ext::result_types(name, *body, in);
  }
  static deft::ext::call_kernel_ptr make_call(const deft::ext::node_def& n);
};

class repeat_kernel final : public deft::ext::call_kernel {
 public:
  explicit repeat_kernel(const repeat& r)
      : times_(static_cast<std::uint64_t>(r.times)), values_(r.body->values()) {}
  std::size_t next(deft::ext::call_context& c) const override {
    if (c.calls() == times_) {
      for (std::size_t i = 0; i < values_; ++i) c.output(i, c.result(i));
      return done;
    }
    for (std::size_t i = 0; i < c.inputs(); ++i)
      c.argument(i < values_ && c.calls() ? c.result(i) : c.input(i));
    return 0;
  }

 private:
  const std::uint64_t times_;
  const std::size_t values_;
};
inline deft::ext::call_kernel_ptr repeat::make_call(const deft::ext::node_def& n) {
  return std::make_unique<repeat_kernel>(deft::ext::decode<repeat>(n.attributes));
}

/// f(f(…(x))), in a function of that name.
template <class F>
deft::any_tensor repeated(const char* name, int times, const deft::any_tensor& x, F f,
                          deft::ext::source_location w = deft::ext::here()) {
  deft::ext::function_body body(name);
  const deft::any_tensor state(body.parameter(x.handle().type(), w));
  const deft::ext::output result = deft::any_tensor(f(state)).handle();
  const auto written = body.finish({&result, 1});
  std::vector<deft::ext::output> inputs{x.handle()};
  inputs.insert(inputs.end(), written.captured.begin(), written.captured.end());
  deft::ext::control_scope after(written.controls);
  return deft::ext::make_node_of(repeat{times, written.function}, w, inputs);
}

}  // namespace testing
