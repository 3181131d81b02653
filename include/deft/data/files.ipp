// SPDX-License-Identifier: Apache-2.0
// deft/data/files.ipp: reading lines and records.
#pragma once
#include <deft/data/files.hpp>
#include <deft/data/input_file.ipp>

namespace deft {
namespace detail {

class line_reader::state : input_file {
 public:
  explicit state(const std::string& file) : input_file("text_lines", file) {}

  bool next(std::string& line) {
    std::size_t searched = 0;
    for (;;) {
      const char* begin = at();
      const std::size_t held = available();
      if (const void* end = std::memchr(begin + searched, '\n', held - searched)) {
        take(line, static_cast<std::size_t>(static_cast<const char*>(end) - begin), 1);
        return true;
      }
      searched = held;
      if (fill(held + 1) == held) {
        if (held > 0) take(line, held, 0);
        return held > 0;
      }
    }
  }

 private:
  void take(std::string& line, std::size_t length, std::size_t end) {
    line.assign(at(), length > 0 && at()[length - 1] == '\r' ? length - 1 : length);
    consume(length + end);
    ++line_;
  }
  std::string where() const override { return str("line ", line_); }

  std::int64_t line_ = 1;
};

line_reader::line_reader(const std::string& file, no_options)
    : state_(std::make_unique<state>(file)) {}
line_reader::line_reader(line_reader&&) noexcept = default;
line_reader::~line_reader() = default;
bool line_reader::next(std::optional<std::tuple<std::string>>& element) {
  if (!element) element.emplace();
  return state_->next(std::get<0>(*element));
}

bool record_source::next(std::optional<std::tuple<std::string>>& element) {
  const auto record = records_.next();
  if (!record) return false;
  if (!element) element.emplace();
  std::get<0>(*element).assign(*record);
  return true;
}

void located_record::rethrow(const error& e) const {
  throw e.with_message(str(e.message(), " (the record at offset ", offset, " of ", *file, ")"));
}

bool placed_record_source::next(std::optional<std::tuple<located_record>>& element) {
  const std::uint64_t offset = records_.offset();
  const auto record = records_.next();
  if (!record) return false;
  if (!element) element.emplace();
  auto& [placed] = *element;
  placed.bytes.assign(*record);
  placed.file = file_;
  placed.offset = offset;
  return true;
}

dataset<located_record> located_records(file_names files) {
  return dataset<located_record>(
      std::make_shared<file_stage<std::tuple<located_record>, placed_record_source, no_options>>(
          std::move(files), no_options()));
}

}  // namespace detail

dataset<std::string> text_lines(file_names files) {
  using namespace detail;
  return dataset<std::string>(
      std::make_shared<file_stage<std::tuple<std::string>, line_reader, no_options>>(
          std::move(files), no_options()));
}
dataset<std::string> records(file_names files) {
  using namespace detail;
  return dataset<std::string>(
      std::make_shared<file_stage<std::tuple<std::string>, record_source, no_options>>(
          std::move(files), no_options()));
}

}  // namespace deft
