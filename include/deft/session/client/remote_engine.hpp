// SPDX-License-Identifier: Apache-2.0
// deft/session/client/remote_engine.hpp: a session's engine that asks a master on another process.
#pragma once
#include <deft/session/engine.hpp>
#include <memory>
#include <string>

namespace deft {

/// Connects to the master at `target` ("deft://host:port").
/// Throws invalid_argument for another form, unavailable if nobody answers within connect_timeout,
/// deadline_exceeded if the session's timeout is shorter.
std::shared_ptr<engine> connect_engine(const std::string& target, const session_options& options);

}  // namespace deft
