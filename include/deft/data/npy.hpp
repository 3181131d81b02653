// SPDX-License-Identifier: Apache-2.0
// deft/data/npy.hpp: .npy files, in which NumPy saves an array, plain or compressed.
#pragma once
#include <deft/core/ndarray.hpp>
#include <string>

namespace deft {

/// Reads a file that numpy.save wrote, plain or gzip (detected by its content): format versions 1
/// to 3, elements of deft's dtypes (little-endian), in C order.
///
///     from_slices(ndarray<float, dyn, 784>(read_npy("x.npy"))).batch(100)
///
/// Throws not_found if there is no such file, unavailable if it cannot be read, data_loss with its
/// name and the offset if it is truncated or corrupt, unimplemented if its dtype, byte order or
/// element order is another one. Nothing is allocated before the shape has been checked against the
/// size of the file.
any_array read_npy(const std::string& file);

/// Writes `array` as a file that numpy.load reads (format version 1), compressed if the name ends
/// with ".gz".
/// Throws unavailable if the file cannot be written, resource_exhausted if the disk is full.
/// @{
void write_npy(const std::string& file, const any_array& array);
template <ext::element T, std::int64_t... E>
void write_npy(const std::string& file, const ndarray<T, E...>& array) {
  write_npy(file, detail::borrowed::from(array));
}
/// @}

}  // namespace deft
