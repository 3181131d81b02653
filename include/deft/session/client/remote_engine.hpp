// SPDX-License-Identifier: Apache-2.0
// deft/session/client/remote_engine.hpp: the engine of a session whose master is in another
// process.
#pragma once
#include <deft/session/engine.hpp>
#include <memory>
#include <string>

namespace deft::ext {

/// Connects to the master at `target` ("deft://host:port", or
/// "deft://host:port/job:worker/task:0"); a server of this process is called directly. Throws
/// invalid_argument if `target` has another form, unavailable if the task does not answer within
/// connect_timeout, deadline_exceeded if the session's timeout is shorter and passes first.
std::shared_ptr<engine> connect_engine(const std::string& target, const session_options& options);

}  // namespace deft::ext
