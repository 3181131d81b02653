// SPDX-License-Identifier: Apache-2.0
// deft/train/replicas/operations.ipp: shape rules of rounds.
#pragma once
#include <deft/op/base/shapes.hpp>
#include <deft/train/replicas/operations.hpp>

namespace deft::op {

void replica_round::expect_possible(std::string_view op) const {
  if (needed < 1 || total < needed || total > most)
    fail(errc::invalid_argument, "[", op, "] a round of ", needed, " of ", total,
         " replicas is not possible");
}

tensor_type current_round::infer(std::span<const tensor_type>) const {
  expect_possible(name);
  return {dims{}, dtype::int64};
}
tensor_type arrive_at_round::infer(std::span<const tensor_type> in) const {
  expect_possible(name);
  if (in[0].type != dtype::int64 || in[0].shape.rank() != 0)
    fail(errc::invalid_argument, "[arrive_at_round] expects a round, int64, and got ", in[0]);
  return {dims{}, dtype::boolean};
}
std::vector<tensor_type> await_replicas::infer(std::span<const tensor_type>) const {
  expect_possible(name);
  return {{dims{needed}, dtype::int64}, {dims{}, dtype::float64}};
}
void end_round::infer(std::span<const tensor_type>) const { expect_possible(name); }
void pause_rounds::infer(std::span<const tensor_type>) const { expect_possible(name); }
void resume_rounds::infer(std::span<const tensor_type>) const { expect_possible(name); }
tensor_type rounds_generation::infer(std::span<const tensor_type>) const {
  expect_possible(name);
  return {dims{}, dtype::int64};
}
void await_whole_rounds::infer(std::span<const tensor_type>) const { expect_possible(name); }
void restart_rounds::infer(std::span<const tensor_type>) const { expect_possible(name); }
void join_rounds::infer(std::span<const tensor_type> in) const {
  expect_possible(name);
  if (in[0].type != dtype::string || in[0].shape.rank() != 1)
    fail(errc::invalid_argument, "[join_rounds] expects tasks, string(?), and got ", in[0]);
}
void leave_rounds::infer(std::span<const tensor_type>) const { expect_possible(name); }
void fail_round::infer(std::span<const tensor_type> in) const {
  expect_possible(name);
  constexpr dtype types[] = {dtype::int32, dtype::string, dtype::boolean};
  for (std::size_t i = 0; i < 3; ++i)
    if (in[i] != tensor_type{dims{}, types[i]})
      fail(errc::invalid_argument, "[fail_round] expects ", tensor_type{dims{}, types[i]},
           ", and got ", in[i]);
}
std::vector<tensor_type> describe_round::infer(std::span<const tensor_type>) const {
  expect_possible(name);
  return {{dims{2}, dtype::int64}, {dims{dyn}, dtype::string}};
}

void accumulate_gradient::infer(std::span<const tensor_type> in) const {
  if (in.size() == 2 && (!is_integer(in[1].type) || in[1].shape.rank() != 1))
    fail(errc::invalid_argument, "[accumulate_gradient] expects the indices of rows, and got ",
         in[1]);
}

std::vector<tensor_type> take_gradients::infer(std::span<const tensor_type> in) const {
  expect_extents(name, shape, true);
  bool known = true;  // the extents of a row
  for (int i = 1; i < shape.rank(); ++i) known &= shape[i] != dyn;
  if (needed < 1 || needed > replica_round::most || !is_floating(type) ||
      (rows && (!is_integer(index_type) || shape.rank() < 1 || shape[0] != dyn || !known)))
    fail(errc::invalid_argument, "[take_gradients] ", needed, " gradients of ",
         tensor_type{shape, type}, " are not possible");
  if (in[0].type != dtype::int64 || !fits(dims{needed}, in[0].shape))
    fail(errc::invalid_argument, "[take_gradients] expects int64(", needed, "), and got ", in[0]);
  std::vector<tensor_type> all;
  for (std::int64_t i = 0; i < needed; ++i) {
    all.push_back({shape, type});
    if (rows) all.push_back({dims{dyn}, index_type});
  }
  return all;
}

}  // namespace deft::op
