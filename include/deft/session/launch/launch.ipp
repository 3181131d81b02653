// SPDX-License-Identifier: Apache-2.0
// deft/session/launch/launch.ipp: umbrella of launch/.
#pragma once
#include <deft/session/launch/launcher.ipp>
#include <deft/session/launch/local_cluster.ipp>
#include <deft/session/launch/task.ipp>
