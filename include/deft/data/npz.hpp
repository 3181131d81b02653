// SPDX-License-Identifier: Apache-2.0
// deft/data/npz.hpp: .npz files, in which NumPy saves arrays by name: ZIP archives of .npy files.
#pragma once
#include <deft/core/any_array.hpp>
#include <map>
#include <string>

namespace deft {

/// Reads a file that numpy.savez or numpy.savez_compressed wrote: members that are stored or
/// deflated, also of more than 4 GB, each as read_npy reads it. An array that deft cannot have is
/// left out, and a warning says so; if there are no others it throws unimplemented.
///
/// Throws not_found if there is no such file, data_loss with its name, and that of the member, if
/// it is not sound, or a checksum is wrong, unimplemented for encrypted members and other
/// compression. Nothing is allocated before a shape has been checked against the size of its
/// member.
std::map<std::string, any_array> read_npz(const std::string& file);

/// How write_npz writes.
struct npz_options {
  bool compressed = false;  ///< as numpy.savez_compressed does
};
/// Writes a file that numpy.load reads. It replaces an older one only when it is complete and on
/// the disk. Throws invalid_argument for an array without a dtype, one of strings, and a name that
/// is empty or not UTF-8; resource_exhausted on a full disk, not_found if there is no such
/// directory.
void write_npz(const std::string& file, const std::map<std::string, any_array>& arrays,
               npz_options options = {});

}  // namespace deft
