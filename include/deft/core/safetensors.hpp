// SPDX-License-Identifier: Apache-2.0
// deft/core/safetensors.hpp: named arrays in a file, in the format of Hugging Face's safetensors.
#pragma once
#include <deft/core/any_array.hpp>
#include <deft/core/file.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace deft {

/// An array in a safetensors file.
struct safetensors_entry {
  std::string type;             ///< as in the file: "F32"
  dtype element = dtype::none;  ///< as deft reads it; none if it cannot
  std::string unsupported;      ///< why: "of F8_E4M3", "of rank 9"; else empty
  dims shape;                   ///< not set if its rank is above 8
  ///@{
  /// Its elements: their first byte, counted from that of the file, and how many bytes they are.
  std::uint64_t begin = 0, bytes = 0;
  ///@}
  std::optional<std::uint32_t> checksum = {};  ///< CRC-32C, in files that deft wrote
};

/// A file of named arrays, open for reading. Files that deft wrote carry checksums, which are
/// compared. Elements of F16 and BF16 are read as float, which has all of their values. (The
/// format: https://huggingface.co/docs/safetensors.)
class safetensors_file {
 public:
  /// Reads the header. Throws not_found if there is no such file, data_loss if it is cut off, or
  /// not a sound safetensors file, as one with two arrays of one name.
  explicit safetensors_file(const std::string& path,
                            const ext::file_roots& roots = ext::file_roots::anywhere());

  /// The arrays by name. The map lives as long as the file.
  const std::map<std::string, safetensors_entry>& entries() const& { return entries_; }
  /// @cond refused
  void entries() const&& = delete;
  /// @endcond
  /// Calls f(0) … f(n - 1), each once, in any order and on any threads.
  using piecewise = void (*)(std::int64_t n, const std::function<void(std::int64_t)>& f);
  /// The array `name`, whose pieces are read by `each`. Throws not_found, unimplemented if deft has
  /// no arrays of its dtype or rank, data_loss if the elements are not those that were written,
  /// cancelled once `stop` is requested.
  any_array read(const std::string& name, const std::stop_token& stop = {},
                 piecewise each = one_by_one) const;

 private:
  static void one_by_one(std::int64_t n, const std::function<void(std::int64_t)>& f) {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }

  std::string path_;
  ext::file_descriptor file_;
  std::map<std::string, safetensors_entry> entries_;
};

/// The arrays of a file. One of a dtype or rank that deft does not have is left out, and a warning
/// says so; if there are no others it throws unimplemented. Throws as safetensors_file does.
std::map<std::string, any_array> read_safetensors(const std::string& path);

/// Writes host arrays to a file, which replaces an older one only when it is complete and on the
/// disk. Throws resource_exhausted on a full disk, not_found if there is no such directory,
/// invalid_argument for the name "__metadata__", a name that is not UTF-8, and an array without a
/// dtype.
void write_safetensors(const std::string& path, const std::map<std::string, any_array>& arrays);

namespace detail {
struct named_array {
  std::string_view name;
  const any_array* value;
};
void write_safetensors(const file_roots& roots, const std::string& path,
                       std::vector<named_array> arrays, const std::stop_token& stop = {});
}  // namespace detail

}  // namespace deft
