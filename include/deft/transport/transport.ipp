// SPDX-License-Identifier: Apache-2.0
// deft/transport/transport.ipp: what transport/ implements once per program.
#pragma once
#include <deft/transport/connection.ipp>
#include <deft/transport/credentials.ipp>
#include <deft/transport/frame.ipp>
#include <deft/transport/handshake.ipp>
#include <deft/transport/hub.ipp>
#include <deft/transport/io_loop.ipp>
#include <deft/transport/listener.ipp>
#include <deft/transport/signals.ipp>
#include <deft/transport/stream.ipp>
#include <deft/transport/xml.ipp>
