// SPDX-License-Identifier: Apache-2.0
// deft/data/record.ipp: TFRecord files, plain or through zlib.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <deft/core/crc32c.hpp>
#include <deft/core/error.hpp>
#include <deft/core/log.hpp>
#include <deft/data/input_file.ipp>
#include <deft/data/output_file.ipp>
#include <deft/data/record.hpp>

namespace deft {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

/// A checksum as records store it, so that a checksum of data with checksums differs from it.
std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8u; }

constexpr std::size_t length_bytes = 12, checksum_bytes = 4;

/// Whether the checksum of `bytes` follows them.
bool is_intact(std::string_view bytes) {
  std::uint32_t stored;
  std::memcpy(&stored, bytes.data() + bytes.size(), sizeof stored);
  return stored == masked(ext::crc32c(bytes));
}

}  // namespace

class record_reader::state : detail::input_file {
 public:
  explicit state(const std::string& file) : input_file("record_reader", file, begins_plain) {}

  std::uint64_t offset() const { return offset_; }

  std::optional<std::string_view> next() {
    const std::size_t head = fill(length_bytes);
    if (head == 0) return {};
    if (head < length_bytes) bad("the file ends within its length");
    std::uint64_t length;
    std::memcpy(&length, at(), sizeof length);
    if (!is_intact({at(), sizeof length})) bad("the checksum of its length is wrong");
    consume(length_bytes);
    // No more than what is there is allocated, whatever the length says.
    const auto whole = static_cast<std::size_t>(
        std::min<std::uint64_t>(length, SIZE_MAX - checksum_bytes) + checksum_bytes);
    if (fill(whole) < whole) bad(ext::str("the file ends within its ", length, " bytes"));
    const std::string_view record(at(), static_cast<std::size_t>(length));
    if (!is_intact(record)) bad("the checksum of its bytes is wrong");
    consume(whole);
    offset_ = consumed();
    return record;
  }

 private:
  std::string where() const override { return ext::str("the record at offset ", offset_); }
  /// A length may begin as gzip does, with 1f 8b.
  static bool begins_plain(std::string_view bytes) {
    return bytes.size() >= length_bytes && is_intact(bytes.substr(0, sizeof(std::uint64_t)));
  }

  std::uint64_t offset_ = 0;
};

record_reader::record_reader(const std::string& file) : state_(new state(file)) {}
record_reader::record_reader(record_reader&&) noexcept = default;
record_reader& record_reader::operator=(record_reader&&) noexcept = default;
record_reader::~record_reader() = default;
std::optional<std::string_view> record_reader::next() { return state_->next(); }
std::uint64_t record_reader::offset() const { return state_->offset(); }

class record_writer::state {
 public:
  explicit state(const std::string& file) : file_("record_writer", file) {}
  ~state() {
    try {
      file_.close();
    } catch (const error& e) {
      logging::warning(e.what());
    }
  }
  state(const state&) = delete;

  void write(std::string_view record) {
    char head[length_bytes];
    const std::uint64_t length = record.size();
    std::memcpy(head, &length, sizeof length);
    const std::uint32_t of_length = masked(ext::crc32c({head, sizeof length}));
    std::memcpy(head + sizeof length, &of_length, checksum_bytes);
    const std::uint32_t of_record = masked(ext::crc32c(record));
    file_.write({head, length_bytes});
    file_.write(record);
    file_.write({reinterpret_cast<const char*>(&of_record), checksum_bytes});
  }
  void flush() { file_.flush(); }
  void close() { file_.close(); }

 private:
  detail::output_file file_;
};

record_writer::record_writer(const std::string& file) : state_(new state(file)) {}
record_writer::record_writer(record_writer&&) noexcept = default;
record_writer& record_writer::operator=(record_writer&&) noexcept = default;
record_writer::~record_writer() = default;
void record_writer::write(std::string_view record) { state_->write(record); }
void record_writer::flush() { state_->flush(); }
void record_writer::close() { state_->close(); }

}  // namespace deft
