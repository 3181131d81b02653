// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/nvrtc.hpp: CUDA source to code for a GPU, by NVIDIA's run-time compiler, which
// is loaded where the machine has it. Neither a GPU nor a toolkit's headers are needed.
#pragma once
#include <deft/core/config.hpp>
#include <string>
#include <string_view>

namespace deft::ext::gpu {

/// Whether libnvrtc was found, of CUDA 12 or 13: by its name, or in the toolkit at $CUDA_HOME,
/// $CUDA_PATH or /usr/local/cuda. Loads it, which takes some time, and keeps it.
bool has_nvrtc();

/// The code of a source for an architecture: of "sm_90" a cubin, of "compute_90" PTX; and PTX of
/// the newest one that libnvrtc knows, which later GPUs run too, of one that is newer. Takes 20 to
/// 500 ms. May be called by several threads.
/// Throws unimplemented without libnvrtc, and internal, with its log, if it refuses the
/// source or the architecture.
std::string compile(const std::string& source, const std::string& architecture);

}  // namespace deft::ext::gpu
