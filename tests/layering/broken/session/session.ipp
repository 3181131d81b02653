// SPDX-License-Identifier: Apache-2.0
// deft/session/session.ipp: an implementation.
#pragma once
