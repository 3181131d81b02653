// SPDX-License-Identifier: Apache-2.0
// deft/data/idx.hpp: IDX files, the format of MNIST, plain or compressed.
#pragma once
#include <deft/core/ndarray.hpp>
#include <string>

namespace deft {

/// Reads an IDX file, plain or gzip (detected by its content). Unsigned bytes become uint8; signed
/// bytes, 16-bit and 32-bit integers int32; floats and doubles stay what they are. The format: two
/// zero bytes, a type, a rank, the extents and then the elements, all big-endian.
/// Throws not_found if there is no such file, unavailable if it cannot be read, data_loss with its
/// name and the offset if it is truncated or corrupt. Nothing is allocated before the extents
/// have been checked against the size of the file.
any_array read_idx(const std::string& file);

/// The dtype and shape of the array that `read_idx` would return.
struct idx_header {
  dtype type = dtype::none;  ///< as deft has it: int32 for signed bytes
  dims shape;                ///< its extents; never of rank 0
};

namespace ext {

/// Reads only the header of an IDX file. Throws as read_idx.
idx_header read_idx_header(const std::string& file);

}  // namespace ext

/// Writes `array` as an IDX file, compressed if the name ends with ".gz".
/// Throws invalid_argument for dtypes that the format lacks (int64, bool), for scalars and for
/// extents of 2^32 or more, unavailable if the file cannot be written, resource_exhausted if the
/// disk is full.
/// @{
void write_idx(const std::string& file, const any_array& array);
template <ext::element T, std::int64_t... E>
void write_idx(const std::string& file, const ndarray<T, E...>& array) {
  write_idx(file, array.array());
}
/// @}

}  // namespace deft
