// SPDX-License-Identifier: Apache-2.0
// deft/op/op.ipp: umbrella of op/'s implementation.
#pragma once
#include <deft/op/catalog.ipp>
#include <deft/op/dataflow.ipp>
#include <deft/op/random.ipp>
#include <deft/op/shapes.ipp>
#include <deft/op/state.ipp>
