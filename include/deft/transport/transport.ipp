// SPDX-License-Identifier: Apache-2.0
// deft/transport/transport.ipp: the implementation of transport/, compiled once per program.
#pragma once
#include <deft/transport/accepted_connection.ipp>
#include <deft/transport/address.ipp>
#include <deft/transport/channel_group.ipp>
#include <deft/transport/channel_state.ipp>
#include <deft/transport/connection.ipp>
#include <deft/transport/connection_table.ipp>
#include <deft/transport/connection_write.ipp>
#include <deft/transport/credentials.ipp>
#include <deft/transport/dialer.ipp>
#include <deft/transport/event_loop.ipp>
#include <deft/transport/frame.ipp>
#include <deft/transport/handshake.ipp>
#include <deft/transport/listener.ipp>
#include <deft/transport/local.ipp>
#include <deft/transport/lookups.ipp>
#include <deft/transport/read_buffer.ipp>
#include <deft/transport/serving_threads.ipp>
#include <deft/transport/shared_memory.ipp>
#include <deft/transport/shared_slots.ipp>
#include <deft/transport/signals.ipp>
#include <deft/transport/spin.ipp>
#include <deft/transport/tcp.ipp>
#include <deft/transport/tls.ipp>
#include <deft/transport/tls_context.ipp>
#include <deft/transport/xml.ipp>
