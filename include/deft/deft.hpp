// SPDX-License-Identifier: Apache-2.0
// deft/deft.hpp: everything, in the order in which an expression flows. One file of a program says
// `#define DEFT_IMPLEMENTATION` before it, unless the program links deft::compiled.
#pragma once
#include <deft/core/config.hpp>
#if defined(DEFT_IMPLEMENTATION) && defined(__CUDACC__)
#error "DEFT_IMPLEMENTATION belongs in a .cpp file, not in one that nvcc compiles"
#endif
#include <deft/expr.hpp>
// graph to plan
#include <deft/op/gradients.hpp>
// plan to kernels: expressions of this file are compiled to packets, or by nvcc for GPUs
#ifdef __CUDACC__
#include <deft/kernels/gpu/kernel_hook.hpp>
#else
#include <deft/kernels/cpu/kernel_hook.hpp>
#endif
// sessions and clusters
#include <deft/session/launch/launcher.hpp>
#include <deft/session/launch/local_cluster.hpp>
#include <deft/session/launch/task.hpp>
#include <deft/session/session.hpp>
// training
#include <deft/core/safetensors.hpp>
#include <deft/data/byte_pair_tokenizer.hpp>
#include <deft/data/csv.hpp>
#include <deft/data/example.hpp>
#include <deft/data/files.hpp>
#include <deft/data/gguf.hpp>
#include <deft/data/idx.hpp>
#include <deft/data/mnist.hpp>
#include <deft/data/npy.hpp>
#include <deft/data/npz.hpp>
#include <deft/data/pipeline.hpp>
#include <deft/data/record.hpp>
#include <deft/data/word_piece_tokenizer.hpp>
#include <deft/observe/chrome_trace.hpp>
#include <deft/observe/summary_writer.hpp>
#include <deft/train/clip.hpp>
#include <deft/train/coordinator.hpp>
#include <deft/train/hooks.hpp>
#include <deft/train/layers.hpp>
#include <deft/train/loss_scaler.hpp>
#include <deft/train/monitored_session.hpp>
#include <deft/train/moving_average.hpp>
#include <deft/train/optimizers.hpp>
#include <deft/train/progress.hpp>
#include <deft/train/replica.hpp>
#include <deft/train/saver.hpp>
#include <deft/train/schedule.hpp>
#include <deft/train/summaries.hpp>
#include <deft/train/sync_replicas.hpp>

#ifdef DEFT_IMPLEMENTATION
#include <deft/core/core.ipp>
#include <deft/data/data.ipp>
#include <deft/device/device.ipp>
#include <deft/kernels/cpu/cpu.ipp>
#include <deft/kernels/cpu/cpu_elementwise.ipp>
#include <deft/kernels/cpu/cpu_linear.ipp>
#include <deft/kernels/gpu/gpu.ipp>
#if __has_include(<thrust/for_each.h>) && !defined(DEFT_NO_THRUST)
#include <deft/kernels/gpu/gpu_elementwise.ipp>
#include <deft/kernels/gpu/gpu_kernels.ipp>
#include <deft/kernels/gpu/simulated/simulated.ipp>
#endif
#include <deft/execute/execute.ipp>
#include <deft/expr/expr.ipp>
#include <deft/graph/graph.ipp>
#include <deft/kernels/kernels.ipp>
#include <deft/observe/observe.ipp>
#include <deft/op/op.ipp>
#include <deft/plan/plan.ipp>
#include <deft/session/launch/launch.ipp>
#include <deft/session/master/master.ipp>
#include <deft/session/server/server.ipp>
#include <deft/session/session.ipp>
#include <deft/session/worker/worker.ipp>
#include <deft/train/replicas/replicas.ipp>
#include <deft/train/train.ipp>
#include <deft/transport/transport.ipp>
#endif
