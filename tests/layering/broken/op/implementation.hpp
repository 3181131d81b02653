// SPDX-License-Identifier: Apache-2.0
// deft/op/implementation.hpp: breaks the rules.
#pragma once
#include <deft/op/op.ipp>
