// SPDX-License-Identifier: Apache-2.0
// deft/session/rooms/unknown.hpp: is in a sub-folder that has no place in the order.
#pragma once
#include <deft/core/error.hpp>
