// SPDX-License-Identifier: Apache-2.0
// deft/op/quoted.hpp: breaks the rules.
#pragma once
#include "add.hpp"
