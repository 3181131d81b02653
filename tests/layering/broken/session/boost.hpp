// SPDX-License-Identifier: Apache-2.0
// deft/session/boost.hpp: breaks the rules.
#pragma once
#include <boost/json.hpp>
