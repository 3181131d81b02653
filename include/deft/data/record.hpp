// SPDX-License-Identifier: Apache-2.0
// deft/data/record.hpp: TFRecord files: sequences of records of bytes, with checksums.
#pragma once
#include <cstdint>
#include <deft/core/config.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace deft {

/// Reads the records of a TFRecord file, plain or gzip (detected by its content). A record is its
/// length, 64 bits little-endian, a masked CRC-32C of the length, the bytes, and a masked CRC-32C
/// of the bytes.
class record_reader {
 public:
  /// Throws not_found if there is no such file, unavailable if it cannot be opened.
  explicit record_reader(const std::string& file);
  /// @cond moves
  record_reader(record_reader&&) noexcept;
  record_reader& operator=(record_reader&&) noexcept;
  /// @endcond
  ~record_reader();

  /// The next record, which is valid until the next call; nothing at the end of the file. Throws
  /// data_loss with the file's name and the record's offset if the file is cut off or corrupt,
  /// unavailable if it cannot be read.
  std::optional<std::string_view> next();
  /// The offset in bytes, uncompressed, of the record that next() reads next.
  std::uint64_t offset() const;

 private:
  class state;
  std::unique_ptr<state> state_;
};

/// Writes a TFRecord file, compressed if its name ends with ".gz". After an error the file has a
/// gap, and every call throws that error again.
class record_writer {
 public:
  /// Creates the file, or empties it. Throws unavailable if it cannot be created.
  explicit record_writer(const std::string& file);
  /// @cond moves
  record_writer(record_writer&&) noexcept;
  record_writer& operator=(record_writer&&) noexcept;
  /// @endcond
  /// Closes the file; an error is logged.
  ~record_writer();

  /// Throws unavailable if the file cannot be written, resource_exhausted if the disk is full.
  void write(std::string_view record);
  /// Hands everything written to the operating system. Throws as write.
  void flush();
  /// Ends the file. Throws as write; nothing may be written afterwards.
  void close();

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace deft
