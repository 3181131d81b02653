// SPDX-License-Identifier: Apache-2.0
// deft/op/slow.hpp: breaks the rules.
#pragma once
#include <iostream>
