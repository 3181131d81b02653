// SPDX-License-Identifier: Apache-2.0
// deft/core/file_mapping.hpp: the bytes of a file as memory, which the system reads when they are
// used.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deft/core/buffer.hpp>
#include <deft/core/file.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace deft::ext {

/// The pages of a file, for reading. They stay mapped as long as there are copies of the object, or
/// of buffers that it has made, also when the file is deleted or replaced by another one. It must
/// not be made shorter meanwhile: the system ends processes that read what is gone (SIGBUS).
class file_mapping {
 public:
  /// Of no file: no bytes.
  file_mapping() = default;
  /// Of an open file; `path` is for messages. Throws unavailable if its file system has no
  /// mappings.
  file_mapping(const file_descriptor& file, const std::string& path);

  std::string_view bytes() const;
  /// `count` bytes from byte `begin`, which must be there.
  buffer view(std::uint64_t begin, std::size_t count) const;

 private:
  struct pages;
  std::shared_ptr<const pages> pages_;
};

}  // namespace deft::ext
