// SPDX-License-Identifier: Apache-2.0
// deft/data/record.ipp: TFRecord files through zlib, which also reads and writes plain files.
#pragma once
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <deft/core/crc32c.hpp>
#include <deft/core/error.hpp>
#include <deft/core/log.hpp>
#include <deft/data/input_file.ipp>
#include <deft/data/record.hpp>
#include <utility>

namespace deft {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

/// A checksum as records store it, so that a checksum of data with checksums differs from it.
std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8u; }

constexpr std::size_t length_bytes = 12, checksum_bytes = 4;

}  // namespace

class record_reader::state : detail::input_file {
 public:
  explicit state(const std::string& file) : input_file("record_reader", file) {}

  std::uint64_t offset() const { return offset_; }

  std::optional<std::string_view> next() {
    const std::size_t head = fill(length_bytes);
    if (head == 0) return {};
    if (head < length_bytes) bad("the file ends within its length");
    std::uint64_t length;
    std::memcpy(&length, at(), sizeof length);
    if (stored(sizeof length) != masked(crc32c({at(), sizeof length})))
      bad("the checksum of its length is wrong");
    consume(length_bytes);
    // No more than what is there is allocated, whatever the length says.
    const auto whole = static_cast<std::size_t>(
        std::min<std::uint64_t>(length, SIZE_MAX - checksum_bytes) + checksum_bytes);
    if (fill(whole) < whole) bad(str("the file ends within its ", length, " bytes"));
    const std::string_view record(at(), static_cast<std::size_t>(length));
    if (stored(record.size()) != masked(crc32c(record))) bad("the checksum of its bytes is wrong");
    consume(whole);
    offset_ += length_bytes + whole;
    return record;
  }

 private:
  std::string where() const override { return str("the record at offset ", offset_); }
  std::uint32_t stored(std::size_t position) const {
    std::uint32_t crc;
    std::memcpy(&crc, at() + position, sizeof crc);
    return crc;
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
  explicit state(const std::string& file) : name_(file) {
    file_ = gzopen(name_.c_str(), name_.ends_with(".gz") ? "wb" : "wbT");
    if (!file_)
      fail(errc::unavailable, "[record_writer] cannot create ", name_, ": ", std::strerror(errno));
    gzbuffer(file_, 1u << 18);
  }
  ~state() {
    try {
      close();
    } catch (const error& e) {
      logging::warning(e.what());
    }
  }
  state(const state&) = delete;

  void write(std::string_view record) {
    char head[length_bytes];
    const std::uint64_t length = record.size();
    std::memcpy(head, &length, sizeof length);
    const std::uint32_t of_length = masked(crc32c({head, sizeof length}));
    std::memcpy(head + sizeof length, &of_length, checksum_bytes);
    const std::uint32_t of_record = masked(crc32c(record));
    put({head, length_bytes});
    put(record);
    put({reinterpret_cast<const char*>(&of_record), checksum_bytes});
  }
  void flush() {
    if (gzflush(file_, Z_SYNC_FLUSH) != Z_OK) fail_writing();
  }
  void close() {
    if (!file_) return;
    errno = 0;
    if (gzclose_w(std::exchange(file_, nullptr)) != Z_OK) fail_writing();
  }

 private:
  void put(std::string_view bytes) {
    if (!file_) fail(errc::failed_precondition, "[record_writer] ", name_, " is closed");
    while (!bytes.empty()) {
      const auto part = static_cast<unsigned>(std::min<std::size_t>(bytes.size(), 1u << 30));
      errno = 0;
      if (gzwrite(file_, bytes.data(), part) != static_cast<int>(part)) fail_writing();
      bytes.remove_prefix(part);
    }
  }
  [[noreturn]] void fail_writing() const {
    fail(errno == ENOSPC ? errc::resource_exhausted : errc::unavailable,
         "[record_writer] cannot write ", name_, ": ",
         errno ? std::strerror(errno) : "the data cannot be compressed");
  }

  std::string name_;
  gzFile file_ = nullptr;
};

record_writer::record_writer(const std::string& file) : state_(new state(file)) {}
record_writer::record_writer(record_writer&&) noexcept = default;
record_writer& record_writer::operator=(record_writer&&) noexcept = default;
record_writer::~record_writer() = default;
void record_writer::write(std::string_view record) { state_->write(record); }
void record_writer::flush() { state_->flush(); }
void record_writer::close() { state_->close(); }

}  // namespace deft
