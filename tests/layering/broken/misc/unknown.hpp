// SPDX-License-Identifier: Apache-2.0
// deft/misc/unknown.hpp: breaks the rules.
#pragma once
