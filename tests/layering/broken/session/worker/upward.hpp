// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/upward.hpp: includes what comes later in the order of its folder.
#pragma once
#include <deft/session/server/server.hpp>
#include <deft/session/wire/messages.hpp>
