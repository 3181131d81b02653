// SPDX-License-Identifier: Apache-2.0
// deft/device/device.ipp: the implementation of device/, compiled once per program.
#pragma once
#include <deft/device/info.ipp>
#include <deft/device/kind.ipp>
#include <deft/device/name.ipp>
#include <deft/device/scope.ipp>
