// SPDX-License-Identifier: Apache-2.0
// deft/data/files.hpp: datasets that read files: lines of text, and TFRecords.
#pragma once
#include <concepts>
#include <deft/core/error.hpp>
#include <deft/data/example.hpp>
#include <deft/data/pipeline.hpp>
#include <deft/data/record.hpp>
#include <initializer_list>
#include <string>
#include <string_view>

namespace deft {

/// One file or several, which are read one after the other: `text_lines("a.txt")`,
/// `text_lines({"a.txt", "b.txt.gz"})`.
struct file_names {
  /// Implicit, of a name or of a list of names. Whether the files exist only a pass finds out.
  /// @{
  template <std::convertible_to<std::string> Name>
  file_names(const Name& one) : names{one} {}  // NOLINT: implicit, as are the others
  file_names(std::vector<std::string> several) : names(std::move(several)) {}  // NOLINT
  file_names(std::initializer_list<std::string> several) : names(several) {}   // NOLINT
  /// @}
  std::vector<std::string> names;  ///< in the order of reading
};

namespace detail {

/// The elements of files. `Reader(file, options)` reads those of one, by next(std::optional<E>&).
template <class E, class Reader, class Options>
class file_stage final : public stage<E> {
 public:
  file_stage(file_names files, Options options)
      : files_(std::move(files.names)), options_(std::move(options)) {}
  std::unique_ptr<cursor<E>> start() const override { return std::make_unique<pass>(*this); }
  std::int64_t cardinality() const override { return files_.empty() ? 0 : unknown_cardinality; }

 private:
  class pass final : public cursor<E> {
   public:
    explicit pass(const file_stage& s) : stage_(s) {}
    bool next(std::optional<E>& element) override {
      for (;;) {
        if (reader_ && reader_->next(element)) return true;
        reader_.reset();
        if (opened_ == stage_.files_.size()) return false;
        reader_.emplace(stage_.files_[opened_++], stage_.options_);
      }
    }
    void restart() override {
      reader_.reset();
      opened_ = 0;
    }

   private:
    const file_stage& stage_;
    std::optional<Reader> reader_;
    std::size_t opened_ = 0;
  };
  std::vector<std::string> files_;
  Options options_;
};

struct no_options {};

class line_reader {
 public:
  line_reader(const std::string& file, no_options);
  line_reader(line_reader&&) noexcept;
  ~line_reader();
  bool next(std::optional<std::tuple<std::string>>& element);

 private:
  class state;
  std::unique_ptr<state> state_;
};

class record_source {
 public:
  record_source(const std::string& file, no_options) : records_(file) {}
  bool next(std::optional<std::tuple<std::string>>& element);

 private:
  record_reader records_;
};

/// A record that knows where it was.
struct located_record {
  std::string bytes;
  std::shared_ptr<const std::string> file;
  std::uint64_t offset = 0;

  /// Throws e with the place added to its message.
  [[noreturn]] void rethrow(const error& e) const;
};

class placed_record_source {
 public:
  placed_record_source(const std::string& file, no_options)
      : records_(file), file_(std::make_shared<const std::string>(file)) {}
  bool next(std::optional<std::tuple<located_record>>& element);

 private:
  record_reader records_;
  std::shared_ptr<const std::string> file_;
};
dataset<located_record> located_records(file_names files);

/// Calls a function with the features of a record.
template <class F>
class example_decoder {
 public:
  explicit example_decoder(F f) : f_(std::move(f)) {}
  decltype(auto) operator()(const located_record& record) {
    try {
      features_.parse(record.bytes);
      return f_(std::as_const(features_));
    } catch (const error& e) {
      record.rethrow(e);
    }
  }

 private:
  F f_;
  example_view features_;
};

}  // namespace detail

/// The lines of text files, plain or gzip (detected by their content), without their ends: "\n" or
/// "\r\n". A pass throws not_found if there is no such file, unavailable if it cannot be read,
/// data_loss with its name and the line if its compressed data is corrupt or cut off.
dataset<std::string> text_lines(file_names files);

/// The records of TFRecord files, plain or gzip (detected by their content). A pass throws as
/// record_reader: data_loss with the file's name and the record's offset if it is corrupt or cut
/// off.
dataset<std::string> records(file_names files);

/// What `decode` returns for each tf.Example of TFRecord files: as map of their records, with its
/// options. It takes the features as a constant example_view, which is valid during the call.
///
///     auto label = [](const example_view& e) { return e.one_integer("label"); };
///     examples(files, label, {.threads = 2}).batch(100).prefetch(1)
///
/// A pass throws as records, and what example_view and `decode` throw; deft's errors say which file
/// and which offset the record has.
template <class F>
auto examples(file_names files, F decode, const map_options& options = {}) {
  if constexpr (!std::is_invocable_v<F&, const example_view&>) {
    static_assert(std::is_invocable_v<F&, const example_view&>,
                  "[examples] expects a function that takes a const example_view&");
  } else {
    return detail::located_records(std::move(files))
        .map(detail::example_decoder<F>(std::move(decode)), options);
  }
}

}  // namespace deft
