// SPDX-License-Identifier: Apache-2.0
// deft/session/client/remote_engine.hpp: a session's engine that asks a master on another process.
#pragma once
#include <deft/session/engine.hpp>
#include <memory>
#include <string>

namespace deft {

/// Connects to the master at `target` ("deft://host:port").
/// Throws invalid_argument for another form, deadline_exceeded if nobody answers.
std::shared_ptr<engine> connect_engine(const std::string& target, const session_options& options);

}  // namespace deft
