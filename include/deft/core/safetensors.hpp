// SPDX-License-Identifier: Apache-2.0
// deft/core/safetensors.hpp: named arrays in a file, in the format of Hugging Face's safetensors.
#pragma once
#include <deft/core/any_array.hpp>
#include <deft/core/file.hpp>
#include <deft/core/file_mapping.hpp>
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

/// How the arrays of a file are read: copied, or as memory that is the file itself, of which the
/// system reads what is used. Such arrays keep the file's pages, also when it is deleted or
/// replaced; it must not be made shorter meanwhile.
enum class file_access : std::uint8_t { copied, mapped };

/// A file of named arrays, open for reading. Files that deft wrote carry checksums, which are
/// compared. (The format: https://huggingface.co/docs/safetensors.)
class safetensors_file {
 public:
  /// Reads the header. Throws not_found if there is no such file, data_loss if it is cut off, or
  /// not a sound safetensors file, as one with two arrays of one name.
  explicit safetensors_file(const std::string& path,
                            const ext::file_roots& roots = ext::file_roots::anywhere(),
                            file_access access = file_access::copied);

  /// The arrays by name. The map lives as long as the file.
  const std::map<std::string, safetensors_entry>& entries() const& { return entries_; }
  /// What else the file says: "format" is "pt" in those of PyTorch.
  const std::map<std::string, std::string>& metadata() const& { return metadata_; }
  /// @cond refused
  void entries() const&& = delete;
  void metadata() const&& = delete;
  /// @endcond
  /// Calls f(0) … f(n - 1), each once, in any order and on any threads.
  using piecewise = void (*)(std::int64_t n, const std::function<void(std::int64_t)>& f);
  /// The array `name`, whose pieces are read by `each`. It is copied from a mapped file, too, if
  /// its elements are BOOL, or not at a multiple of their size there.
  /// Throws not_found, unimplemented if deft has no arrays of its dtype or rank, data_loss if the
  /// elements are not those that were written, cancelled once `stop` is requested.
  any_array read(const std::string& name, const std::stop_token& stop = {},
                 piecewise each = one_by_one) const;

 private:
  static void one_by_one(std::int64_t n, const std::function<void(std::int64_t)>& f) {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }

  std::string path_;
  ext::file_descriptor file_;
  ext::file_mapping pages_;  ///< none if it is not mapped
  std::map<std::string, safetensors_entry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// The arrays of a model in one safetensors file or several, mapped. Nothing of them is read before
/// it is used.
///
///     const safetensors_model bert("all-MiniLM-L6-v2");
///     for (const std::string& name : bert.names("encoder.layer.*.weight")) f(bert.read(name));
class safetensors_model {
 public:
  /// `path` is that of a file, of an index ("model.safetensors.index.json", which says which of the
  /// files next to it has which array), or of a directory with one index or, without any, one file.
  /// Throws not_found if there is none, or a file of an index is not there; data_loss for a file
  /// that is not sound, and an index that is not that of its files.
  explicit safetensors_model(const std::string& path,
                             const ext::file_roots& roots = ext::file_roots::anywhere(),
                             file_access access = file_access::mapped);

  /// The names that match one of the patterns, in which '*' is any text and '?' a character;
  /// without patterns, all. Throws not_found if there are none for a pattern.
  /// @{
  std::vector<std::string> names(const std::vector<std::string>& patterns) const;
  std::vector<std::string> names(const std::string& pattern) const {
    return names(std::vector{pattern});
  }
  std::vector<std::string> names() const { return names(std::vector<std::string>()); }
  /// @}
  bool contains(const std::string& name) const { return files_of_.contains(name); }  ///< an array
  /// Throws not_found.
  const safetensors_entry& entry(const std::string& name) const&;
  /// @cond refused
  void entry(const std::string&) const&& = delete;
  /// @endcond
  /// As safetensors_file::read.
  any_array read(const std::string& name) const;
  /// The types of the arrays, as the files have them, by name: for writing arrays of these names.
  std::map<std::string, std::string> types() const;
  /// Of all files.
  std::map<std::string, std::string> metadata() const;
  /// @cond internal
  /// The path of the file that has an array.
  const std::string& file_of(const std::string& name) const {
    return paths_.at(files_of_.at(name));
  }
  /// @endcond

 private:
  std::string path_;
  std::vector<std::string> paths_;
  std::vector<safetensors_file> files_;
  std::map<std::string, std::size_t> files_of_;  ///< which file has which array
};

/// What read_safetensors reads.
struct safetensors_options {
  /// Patterns of names, as in "encoder.layer.*.weight"; none: all arrays.
  std::vector<std::string> names = {};
  file_access access = file_access::copied;  ///< how
};

/// The arrays of a file, an index or a directory. One of a dtype or rank that deft does not have is
/// left out, and a warning says so; if there are no others it throws unimplemented. Throws as
/// safetensors_model does, and not_found for a pattern that no name matches.
///
///     read_safetensors("model", {.names = {"encoder.layer.*"}, .access = file_access::mapped})
std::map<std::string, any_array> read_safetensors(const std::string& path,
                                                  const safetensors_options& options = {});

/// What write_safetensors writes besides the arrays.
struct safetensors_format {
  /// What their elements are in the file, by name, as safetensors_model::types says of others:
  /// floats can be "F16" or "BF16" there, rounded to nearest, ties to even. Those of the array if
  /// it is not here.
  std::map<std::string, std::string> types = {};
  std::map<std::string, std::string> metadata = {};  ///< as safetensors_file::metadata
};

/// Writes host arrays to a file, which replaces an older one only when it is complete and on the
/// disk. Throws resource_exhausted on a full disk, not_found if there is no such directory,
/// invalid_argument for the name "__metadata__", names and metadata that are not UTF-8, an array
/// without a dtype, and one whose elements cannot have the type that `format` says.
void write_safetensors(const std::string& path, const std::map<std::string, any_array>& arrays,
                       const safetensors_format& format = {});

namespace detail {
struct named_array {
  std::string_view name;
  const any_array* value;
};
void write_safetensors(const file_roots& roots, const std::string& path,
                       std::vector<named_array> arrays, const std::stop_token& stop = {},
                       const safetensors_format& format = {});
}  // namespace detail

}  // namespace deft
