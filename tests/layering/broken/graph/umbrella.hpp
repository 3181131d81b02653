// SPDX-License-Identifier: Apache-2.0
// deft/graph/umbrella.hpp: breaks the rules.
#pragma once
#include <deft/expr.hpp>
