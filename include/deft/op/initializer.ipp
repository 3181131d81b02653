// SPDX-License-Identifier: Apache-2.0
// deft/op/initializer.ipp: first values of variables.
#pragma once
#include <deft/op/assign.hpp>
#include <deft/op/broadcast_to.hpp>
#include <deft/op/initializer.hpp>
#include <deft/op/random_normal.hpp>
#include <deft/op/random_uniform.hpp>
#include <deft/op/truncated_normal.hpp>

namespace deft {

namespace {

template <class Op>
initializer drawn(Op o) {
  return initializer([o](const ext::initial_request& r) mutable {
    o.shape = r.shape;
    o.type = r.type;
    o.key = r.key;
    o.every_step = false;
    return detail::apply_any(o, {}, r.location);
  });
}

}  // namespace

// Here, so that a program's many variables do not each compile them.
initializer::initializer(const initializer& o) = default;
initializer::initializer(initializer&& o) noexcept = default;
initializer& initializer::operator=(initializer o) noexcept {
  make_.swap(o.make_);
  return *this;
}
initializer::~initializer() = default;

initializer initializer::of(any_tensor x) {
  return initializer([x = std::move(x)](const ext::initial_request& r) {
    return x.rank() == 0 ? broadcast_to(x, r.shape, r.location) : x;
  });
}
initializer initializer::of(any_array a) {
  if (!a.storage().unique()) a = a.clone();
  return initializer([a = std::move(a)](const ext::initial_request& r) {
    if (a.type() == dtype::string && a.shape().empty() && r.type == dtype::string)
      return detail::add_constant(
          detail::repeated(a.strings()[0], {r.shape, r.type}, {}, r.location), r.location);
    any_tensor x = detail::add_constant(a, r.location);
    return x.rank() == 0 ? broadcast_to(x, r.shape, r.location) : x;
  });
}
initializer initializer::filling(const detail::literal& v) {
  return initializer([v](const ext::initial_request& r) {
    return broadcast_to(detail::literal_like(v, r.type, r.location), r.shape, r.location);
  });
}

initializer zeros() {
  return initializer([](const ext::initial_request& r) {
    return broadcast_to(detail::literal_like(0, r.type, r.location), r.shape, r.location);
  });
}
initializer ones() {
  return initializer([](const ext::initial_request& r) {
    return broadcast_to(detail::literal_like(1, r.type, r.location), r.shape, r.location);
  });
}
initializer random_uniform(double low, double high) {
  op::random_uniform o;
  o.low = low;
  o.high = high;
  return drawn(o);
}
initializer random_normal(double mean, double stddev) {
  op::random_normal o;
  o.mean = mean;
  o.stddev = stddev;
  return drawn(o);
}
initializer truncated_normal(double stddev) {
  op::truncated_normal o;
  o.stddev = stddev;
  return drawn(o);
}

}  // namespace deft
