// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deft/kernels/host_tables.hpp>
#include <deft/train/replicas/operations.hpp>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;

namespace {

/// A call of a kernel by itself.
struct single_call final : value_call {
  explicit single_call(std::vector<any_array> values) : in(std::move(values)) {}
  std::size_t inputs() const override { return in.size(); }
  any_array input(std::size_t i) const override { return in[i]; }
  void output(std::size_t o, any_array value) override {
    out.resize(std::max(out.size(), o + 1));
    out[o] = std::move(value);
  }
  const step_context& step() const override { return context; }
  waker make_waker() const override { return {}; }
  wait_list::ticket& ticket() override { return place; }
  std::any& state() override { return kept; }

  std::vector<any_array> in, out;
  step_context context;
  wait_list::ticket place;
  std::any kept;
};

/// The resources of a task, and what sessions do with the gradients of one variable.
struct task_with_gradients {
  template <class Op>
  std::vector<any_array> run(const Op& o, std::vector<any_array> in, std::uint64_t session) {
    node_def n;
    n.op = &record_of<Op>;
    n.attributes = encode(o);
    std::vector<transfer> none;
    const kernel_table all = replica_kernels();
    const auto entry = std::ranges::find(all, Op::name, &kernel_entry::op);
    REQUIRE(entry != all.end());
    kernels.push_back(entry->make_value({n, store, none, none, session, "", {}}));
    single_call call(std::move(in));
    const bool done = kernels.back()->run(call);
    CHECK(done);
    return call.out;
  }
  void bring(std::uint64_t session, std::vector<any_array> gradient) {
    op::accumulate_gradient o;
    o.accumulator = "w";
    run(o, std::move(gradient), session);
  }
  std::vector<any_array> take(std::vector<std::int64_t> sessions, bool rows = false) {
    op::take_gradients o;
    o.accumulator = "w";
    o.needed = std::ssize(sessions);
    o.type = dtype::float32;
    o.shape = rows ? dims{dyn, 2} : dims{2};
    o.rows = rows;
    any_array ids(dtype::int64, dims{o.needed});
    std::ranges::copy(sessions, ids.mutable_data<std::int64_t>());
    return run(o, {ids}, 9);
  }

  resource_store store;
  std::vector<value_kernel_ptr> kernels;  ///< which hold the places of sessions
};

any_array floats(dims shape, float value) {
  any_array a(dtype::float32, shape);
  std::ranges::fill_n(a.mutable_data<float>(), a.elements(), value);
  return a;
}

}  // namespace

TEST_CASE("taken gradients are in the order of the sessions, and zeros where one is missing") {
  task_with_gradients t;
  t.bring(1, {floats({2}, 1)});
  t.bring(2, {floats({2}, 2)});
  const auto out = t.take({2, -1, 1});
  REQUIRE(out.size() == 3);
  for (std::size_t i = 0; const float expected : {2.f, 0.f, 1.f}) {
    CAPTURE(i);
    CHECK(out[i].shape() == dims{2});
    for (const float x : out[i].span<float>()) CHECK(x == expected);
    ++i;
  }
  CHECK(error_of([&] { t.take({2}); }) ==
        "aborted: [sync_replicas] the gradient of a replica is gone");
}

TEST_CASE("gradients of rows come with their indices, none where one is missing") {
  task_with_gradients t;
  any_array indices(dtype::int64, dims{3});
  t.bring(4, {floats({3, 2}, 1), indices});
  const auto out = t.take({-1, 4}, true);
  REQUIRE(out.size() == 4);
  CHECK(out[0].shape() == dims{0, 2});
  CHECK(out[1].shape() == dims{0});
  CHECK(out[2].shape() == dims{3, 2});
  CHECK(out[3].shape() == dims{3});
  t.bring(4, {floats({3, 2}, 1), indices});
  CHECK(error_of([&] { t.take({4}); }).find("disagree whether the gradient of \"w\"") !=
        std::string::npos);
}
