// SPDX-License-Identifier: Apache-2.0
// deft/graph/upward.hpp: breaks the rules.
#pragma once
#include <deft/op/add.hpp>
