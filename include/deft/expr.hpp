// SPDX-License-Identifier: Apache-2.0
// deft/expr.hpp: everything that writing and checking models needs. Expressions of files that
// include no more run as portable programs, or with the kernels of files that see deft/deft.hpp.
#pragma once
#include <deft/core/config.hpp>
#include <deft/core/log.hpp>
#include <deft/core/ndarray.hpp>
#include <deft/device/scope.hpp>
#include <deft/expr/kernel_arguments.hpp>
#include <deft/expr/tensor.hpp>
#include <deft/graph/graph_def.hpp>
#include <deft/op/catalog.hpp>
