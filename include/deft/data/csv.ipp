// SPDX-License-Identifier: Apache-2.0
// deft/data/csv.ipp: splitting rows into fields, and fields into numbers.
#pragma once
#include <charconv>
#include <cmath>
#include <deft/core/printable.hpp>
#include <deft/data/csv.hpp>
#include <deft/data/input_file.ipp>

namespace deft::detail {

void check_csv(const csv_options& options, std::size_t columns) {
  const char s = options.separator;
  if (s == '"' || s == '\n' || s == '\r')
    fail(errc::invalid_argument, "[csv] a quote or a line end cannot separate fields");
  if (options.columns.empty()) return;
  if (!options.header)
    fail(errc::invalid_argument,
         "[csv] columns are chosen by the names in the header: set .header");
  if (options.columns.size() != columns)
    fail(errc::invalid_argument, "[csv] expects a type for each column, got ", columns,
         " types and ", options.columns.size(), " columns");
}

namespace {

std::string_view trimmed(std::string_view s) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!s.empty() && blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && blank(s.back())) s.remove_suffix(1);
  return s;
}

}  // namespace

class csv_reader::state : input_file {
 public:
  state(const std::string& file, const csv_options& options, std::size_t columns)
      : input_file("csv", file),
        separator_(options.separator),
        has_header_(options.header),
        expected_(columns) {
    if (fill(3) == 3 && std::string_view(at(), 3) == "\xef\xbb\xbf") consume(3);
    for (std::size_t i = 0; i < columns; ++i) chosen_.push_back(i);
    if (!options.header || !split()) return;
    for (std::size_t i = 0; i < fields_.size(); ++i) names_.emplace_back(trimmed(field(i)));
    if (options.columns.empty()) {
      check_count();
      return;
    }
    expected_ = names_.size();
    for (std::size_t i = 0; i < columns; ++i) {
      const std::string_view name = trimmed(options.columns[i]);
      const auto found = std::find(names_.begin(), names_.end(), name);
      if (found == names_.end())
        fail(errc::not_found, "[csv] ", file, " has no column \"", name, "\"; it has ",
             join(names_, ", ", [](const std::string& n) { return printable(n); }));
      if (std::find(found + 1, names_.end(), name) != names_.end())
        fail(errc::invalid_argument, "[csv] ", file, " has two columns \"", name,
             "\": read all, without .columns");
      chosen_[i] = static_cast<std::size_t>(found - names_.begin());
    }
  }

  bool next_row() {
    if (!split()) return false;
    ++rows_;
    check_count();
    return true;
  }

  std::string_view text(std::size_t column) const { return field(chosen_[column]); }
  [[noreturn]] void bad_field(std::size_t column, std::string_view what) const {
    bad_column(chosen_[column], str('"', printable(text(column), 40), "\" ", what));
  }
  /// What helps where names are read as numbers.
  std::string_view hint(std::string_view field) const {
    constexpr std::string_view no_name = "0123456789+-.,;:\"' ";
    const bool is_name = !field.empty() && no_name.find(field[0]) == no_name.npos;
    return rows_ == 1 && !has_header_ && is_name ? ": a line of names is skipped by .header = true"
                                                 : "";
  }

 private:
  struct span {
    std::size_t begin, size;  ///< in the row
  };

  std::string where() const override { return str("line ", line_); }
  [[noreturn]] void bad_column(std::size_t i, const std::string& what) const {
    bad_at(str(where(), ", column ", i + 1,
               i < names_.size() ? str(" (", printable(names_[i]), ")") : ""),
           what);
  }
  std::string_view field(std::size_t i) const { return {at() + fields_[i].begin, fields_[i].size}; }
  void check_count() const {
    if (fields_.size() != expected_)
      bad(str("it has ", fields_.size(), fields_.size() == 1 ? " field" : " fields", "; expected ",
              expected_));
  }

  bool has(std::size_t i) { return i < available() || fill(i + 1) > i; }
  bool is(std::size_t i, char c) { return has(i) && at()[i] == c; }

  /// Finds the fields of the next row that is not blank; false at the end of the file.
  bool split() {
    do {
      consume(row_bytes_);
      line_ += row_lines_;
      row_bytes_ = row_lines_ = 0;
      if (!has(0)) return false;
      split_row();
    } while (fields_.size() == 1 && trimmed(field(0)).empty() && at()[0] != '"');
    return true;
  }
  void split_row() {
    fields_.clear();
    std::size_t i = 0;
    do {
      i = is(i, '"') ? quoted(i) : plain(i);
    } while (is(i, separator_) && ++i);
    row_lines_ += is(i, '\n');
    row_bytes_ = i + is(i, '\n');
  }
  /// Both return where the field ends.
  std::size_t plain(std::size_t begin) {
    std::size_t i = begin;
    for (; has(i) && at()[i] != separator_ && at()[i] != '\n'; ++i)
      if (at()[i] == '"')
        bad_column(fields_.size(), "a quote in a field that does not begin with one");
    const bool ends_row = !is(i, separator_);
    fields_.push_back({begin, i - begin - (ends_row && i > begin && at()[i - 1] == '\r')});
    return i;
  }
  std::size_t quoted(std::size_t quote) {
    const std::size_t begin = quote + 1;
    std::size_t i = begin, to = begin;
    for (;; ++i) {
      if (!has(i)) bad_column(fields_.size(), "the file ends within quotes");
      if (at()[i] == '"' && !is(++i, '"')) break;
      row_lines_ += at()[i] == '\n';
      at()[to++] = at()[i];  // quotes that are written twice move the rest down
    }
    if (is(i, '\r') && (is(i + 1, '\n') || !has(i + 1))) ++i;
    if (has(i) && at()[i] != separator_ && at()[i] != '\n')
      bad_column(fields_.size(), "text after the closing quote");
    fields_.push_back({begin, to - begin});
    return i;
  }

  char separator_;
  bool has_header_;
  std::size_t rows_ = 0;  ///< read, without the header
  std::size_t expected_;  ///< fields of a row
  std::vector<std::size_t> chosen_;
  std::vector<std::string> names_;
  std::vector<span> fields_;
  std::size_t row_bytes_ = 0, row_lines_ = 0;
  std::size_t line_ = 1;  ///< on which the row begins
};

namespace {

/// Whether a decimal number, which fits no floating-point type, is too small rather than too large:
/// by the place of its first digit other than 0, and its exponent.
bool is_below_one(std::string_view s) {
  const auto exponent_at = std::min(s.find_first_of("eE"), s.size());
  const std::string_view digits = s.substr(0, exponent_at);
  std::string_view exponent = s.substr(std::min(exponent_at + 1, s.size()));
  const auto first = digits.find_first_of("123456789");
  if (first == digits.npos) return true;
  const auto point = std::min(digits.find('.'), digits.size());
  const bool is_negative = exponent.starts_with('-');
  if (is_negative || exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int64_t power = 0;  // at most a file's length is as much as this
  const auto [end, error] =
      std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
  if (error == std::errc::result_out_of_range) return is_negative;
  if (is_negative) power = -power;
  const auto place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  return power < (place > 0 ? 1 - place : -place);
}

/// The whole of `text` as a number; `state` names the field in errors.
template <class T, class State>
void read_number(const State& state, std::size_t column, T& element) {
  lane_type<T> to{};
  std::string_view s = trimmed(state.text(column));
  if (s.starts_with('+') && !s.starts_with("+-")) s.remove_prefix(1);
  const char* const last = s.data() + s.size();
  auto [end, error] = std::from_chars(s.data(), last, to);
  if constexpr (is_floating_type<T>)
    if (error == std::errc::result_out_of_range && is_below_one(s)) {
      // Too small, not too large: the nearest number may still be one above 0.
      long double wide = 0;
      const bool is_held = std::from_chars(s.data(), last, wide).ec == std::errc();
      to = static_cast<lane_type<T>>(is_held ? wide : s.starts_with('-') ? -0.l : 0.l);
      error = {};
    }
  element = static_cast<T>(to);
  if constexpr (is_half_type<T>)
    if (std::isinf(static_cast<float>(element)) && !std::isinf(to))
      error = std::errc::result_out_of_range;
  if (error == std::errc::result_out_of_range)
    state.bad_field(column, str("is out of range for ", dtype_of<T>));
  if (error != std::errc() || end != last)
    state.bad_field(column, str("is not a number of type ", dtype_of<T>, state.hint(s)));
}

template <class State>
void read_bool(const State& state, std::size_t column, bool& to) {
  const std::string_view s = trimmed(state.text(column));
  to = s == "1" || s == "true";
  if (!to && s != "0" && s != "false") state.bad_field(column, "is not a bool");
}

}  // namespace

csv_reader::csv_reader(const std::string& file, const csv_options& options, std::size_t columns)
    : state_(std::make_unique<state>(file, options, columns)) {}
csv_reader::csv_reader(csv_reader&&) noexcept = default;
csv_reader::~csv_reader() = default;
bool csv_reader::next_row() { return state_->next_row(); }
void csv_reader::get(std::size_t column, dtype type, void* to) const {
  visit_dtype(type, [&]<class T>() {
    T& element = *static_cast<T*>(to);
    if constexpr (std::is_same_v<T, bool>)
      read_bool(*state_, column, element);
    else
      read_number(*state_, column, element);
  });
}
void csv_reader::get(std::size_t column, std::string& to) const { to.assign(state_->text(column)); }
bool csv_reader::is_empty(std::size_t column, bool blanks_ignored) const {
  const std::string_view s = state_->text(column);
  return (blanks_ignored ? trimmed(s) : s).empty();
}

}  // namespace deft::detail
