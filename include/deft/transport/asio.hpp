// SPDX-License-Identifier: Apache-2.0
// deft/transport/asio.hpp: the Boost.Asio headers that transport/ uses, for its implementation
// files. Internal.
#pragma once
// nvcc cannot read Asio's variable templates: all translation units disable them.
#ifndef BOOST_ASIO_DISABLE_SFINAE_VARIABLE_TEMPLATES
#define BOOST_ASIO_DISABLE_SFINAE_VARIABLE_TEMPLATES
#endif
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
