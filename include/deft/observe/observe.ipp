// SPDX-License-Identifier: Apache-2.0
// deft/observe/observe.ipp: the implementation of observe/, compiled once per program.
#pragma once
#include <deft/observe/chrome_trace.ipp>
#include <deft/observe/summary_writer.ipp>
