// SPDX-License-Identifier: Apache-2.0
// deft/train/layers_common.ipp: variables of layers are made, or found by their names.
#pragma once
#include <cmath>
#include <deft/op/where.hpp>
#include <deft/train/layers_common.hpp>
#include <deft/train/losses.hpp>

namespace deft {

void training_flag::expect_flag(ext::source_location w) const {
  if (tensor_.rank() != 0 || tensor_.type() != dtype::boolean)
    throw error(errc::invalid_argument,
                ext::str("[training] expects a scalar of bool, and got ", tensor_.handle().type()),
                name_of(tensor_), w);
}
any_tensor training_flag::chosen(const any_tensor& training, const any_tensor& otherwise) const {
  return where(tensor_, training, otherwise);
}

initializer glorot_uniform() {
  return initializer([](const ext::initial_request& r) {
    double in = 1, out = 1, each = 1;
    const int rank = r.shape.rank();
    for (int i = 0; i + 2 < rank; ++i) each *= static_cast<double>(r.shape[i]);
    if (rank > 0) out = static_cast<double>(r.shape[rank - 1]);
    in = rank > 1 ? static_cast<double>(r.shape[rank - 2]) : out;
    const double range = std::sqrt(6 / std::max(1.0, each * (in + out)));
    return random_uniform(-range, range)(r);
  });
}

namespace detail {

any_variable layer_variable(const layer_scope& s, std::string_view suffix, const tensor_type& type,
                            const initializer& first, bool trainable) {
  if (s.name.empty())
    throw error(errc::invalid_argument, str("[", s.layer, "] expects a name for its variables"), {},
                s.location);
  std::optional<scope> outside;
  if (s.shared) outside.emplace(push_name{""});
  const std::string name = str(s.name, "/", suffix);
  const scope_ref& around = current_scope();
  const std::string full = (around ? around->name_prefix : std::string()) + name;
  if (const node_ref made = current_graph().find_variable(full)) {
    const tensor_type& there = made->outputs[0];
    if (!(there == type))
      throw error(errc::invalid_argument,
                  str("[", s.layer, "] the variable ", full, " is ", there, ", made ",
                      where_of(made->location()), ", and the layer needs ", type,
                      "; layers of one name share their variables"),
                  full, s.location);
    return any_variable(made);
  }
  variable_options options;
  options.trainable = trainable;
  return any_variable(make_variable(name, type, first, options, s.location).node);
}

any_variable layer_weights(const layer_scope& s, std::string_view suffix, const tensor_type& type,
                           const std::optional<initializer>& first, const regularizer& penalty) {
  any_variable v = layer_variable(s, suffix, type, first ? *first : glorot_uniform());
  if (penalty) add_loss(penalty(v, s.location), s.location);
  return v;
}

void refuse_layer(const layer_scope& s, const any_tensor& x, const std::string& what) {
  throw error(errc::invalid_argument, str("[", s.layer, "] ", what), name_of(x), s.location);
}

std::int64_t layer_features(const layer_scope& s, const any_tensor& x, int least) {
  if (is_floating(x.type()) && x.rank() >= least && x.shape()[x.rank() - 1] == dyn)
    refuse_layer(s, x,
                 str("expects a tensor whose last extent is known, as the variables' shapes depend "
                     "on it, and got ",
                     x.handle().type(), ": use ensure_shape(x, {dyn, N})"));
  if (!is_floating(x.type()) || x.rank() < least)
    refuse_layer(
        s, x,
        str("expects a floating tensor of rank ", least, " or more, and got ", x.handle().type()));
  return x.shape()[x.rank() - 1];
}

}  // namespace detail
}  // namespace deft
