// SPDX-License-Identifier: Apache-2.0
// tests/kernels/expressions.hpp: the types of some written expressions.
#pragma once
#include <deft/kernels/spec/expression_eval.hpp>
#include <deft/op/catalog.hpp>

namespace testing {

template <class T>
using in = deft::detail::leaf<T, deft::shape_t<deft::dyn>>;
template <class T>
using lit = deft::detail::literal_leaf<T>;
using F = in<float>;
using K = lit<float>;

/// relu((a * b + c) * d - e + k * f): six operations.
using chain = deft::ext::call<
    deft::op::relu,
    deft::ext::call<
        deft::op::add,
        deft::ext::call<
            deft::op::sub,
            deft::ext::call<deft::op::mul,
                            deft::ext::call<deft::op::add, deft::ext::call<deft::op::mul, F, F>, F>,
                            F>,
            F>,
        deft::ext::call<deft::op::mul, K, F>>>;

}  // namespace testing
