// SPDX-License-Identifier: Apache-2.0
// deft/session/archive.ipp: breaks the rules.
#pragma once
#include <boost/serialization/vector.hpp>
