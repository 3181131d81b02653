// SPDX-License-Identifier: Apache-2.0
// deft/deft.hpp: forgets session/.
#pragma once
#include <deft/graph/graph.ipp>
