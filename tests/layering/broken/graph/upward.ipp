// SPDX-License-Identifier: Apache-2.0
// deft/graph/upward.ipp: breaks the rules.
#pragma once
#include <deft/session/session.hpp>
