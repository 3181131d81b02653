// SPDX-License-Identifier: Apache-2.0
// deft/session/asio.ipp: breaks the rules.
#pragma once
#include <boost/asio.hpp>
