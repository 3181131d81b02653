// SPDX-License-Identifier: Apache-2.0
// deft/train/replicas/replicas.ipp: umbrella of train/replicas/: it alone is what a task needs that
// only serves a training job.
#pragma once
#include <deft/train/replicas/accumulator.ipp>
#include <deft/train/replicas/kernels.ipp>
#include <deft/train/replicas/operations.ipp>
#include <deft/train/replicas/pauses.ipp>
#include <deft/train/replicas/rounds.ipp>
#include <deft/train/replicas/step_barrier.ipp>
