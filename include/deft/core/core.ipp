// SPDX-License-Identifier: Apache-2.0
// deft/core/core.ipp: what core/ implements once per program.
#pragma once
#include <deft/core/any_array.ipp>
#include <deft/core/array_text.ipp>
#include <deft/core/buffer.ipp>
#include <deft/core/crc32c.ipp>
#include <deft/core/file.ipp>
#include <deft/core/file_mapping.ipp>
#include <deft/core/hash.ipp>
#include <deft/core/num_text.ipp>
#include <deft/core/printable.ipp>
#include <deft/core/quantized.ipp>
#include <deft/core/safetensors.ipp>
#include <deft/core/safetensors_model.ipp>
#include <deft/core/text.ipp>
#include <deft/core/thread.ipp>

namespace deft {
template <int Major, int Minor, int Patch>
bool link_deft_compiled_of_this_version_or_define_DEFT_IMPLEMENTATION() {
  return true;
}
template bool link_deft_compiled_of_this_version_or_define_DEFT_IMPLEMENTATION<
    DEFT_VERSION_MAJOR, DEFT_VERSION_MINOR, DEFT_VERSION_PATCH>();
}  // namespace deft
