// SPDX-License-Identifier: Apache-2.0
// deft/session/once.hpp: not guarded.
#include <deft/session/head.hpp>
