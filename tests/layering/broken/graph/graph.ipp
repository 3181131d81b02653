// SPDX-License-Identifier: Apache-2.0
// deft/graph/graph.ipp: an implementation.
#pragma once
