// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/stream.hpp: what kernels of GPUs are written against. Files of kernels are
// compiled twice, by nvcc and by the host's compiler, each time in the namespace of a system:
// deft::ext::gpu::DEFT_GPU_SYSTEM.
#pragma once
// A system's `stream` is where a kernel's run queues its work, in order:
//
//   const T* in<T>(const void* p), T* out<T>(void* p)
//       where device code finds the elements at an address of this device
//   launch(n, f)
//       f(i) for 0 <= i < n
//   over_rows(f, rows, n, room)
//       rows of n columns folded, as row_fold says; room: row_room(f, rows, n) bytes of scratch
//   sort_by_key(keys, sorted_keys, values, sorted_values, n, bits, room)
//       n std::uint32_t keys below 2^bits in ascending order, equal ones in the order in which they
//       came, and each key's std::uint32_t value; the arrays are what `in` and `out` give
//   static sort_room(n)
//       bytes of scratch that it needs at room, which is aligned to 256
//   multiply(type, p, a, b, c)
//       queues the product p of matrices at addresses of this device, by a library; false: there is
//       none that does it, and nothing was queued
//   convolve(type, c, a, b, to)
//       the same for an image_convolution of arrays at addresses of this device: a and b are the
//       first two operands of the operation
//   faults()
//       what device code reports errors to, as a fault_report
//
// Functors are copied, and may be run at any time after that: they hold what `in` and `out` give
// and plain numbers. Nothing of a launch changes anything once an update's run has failed.
#ifdef __CUDACC__
#include <deft/kernels/gpu/cuda/launch.hpp>
#else
#include <deft/kernels/gpu/simulated/stream.hpp>
#endif
