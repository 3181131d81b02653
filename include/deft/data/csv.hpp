// SPDX-License-Identifier: Apache-2.0
// deft/data/csv.hpp: rows of CSV files as a dataset.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deft/data/files.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace deft {

/// How csv reads files, and which of their columns.
struct csv_options {
  bool header =
      false;  ///< each file begins with a row of the columns' names; blanks around are ignored
  char separator = ',';  ///< between fields
  /// The columns to read, by the names that the header gives them, in this order; none: all.
  std::vector<std::string> columns = {};
};

namespace detail {

/// Throws invalid_argument.
void check_csv(const csv_options& options, std::size_t columns);

/// The fields of a CSV file, row by row.
class csv_reader {
 public:
  csv_reader(const std::string& file, const csv_options& options, std::size_t columns);
  csv_reader(csv_reader&&) noexcept;
  ~csv_reader();
  /// Goes to the next row; false at the end. Throws data_loss with the file and the line.
  bool next_row();
  /// What the field of a column holds. Throws data_loss with the file, the line and the column.
  template <ext::plain_element T>
  void get(std::size_t column, T& to) const {
    get(column, dtype_of<T>, &to);
  }
  void get(std::size_t column, std::string& to) const;
  template <class T>
  void get(std::size_t column, std::optional<T>& to) const {
    if (is_empty(column, !std::same_as<T, std::string>))
      to.reset();
    else
      get(column, to.emplace());
  }

 private:
  /// An element of `type`.
  void get(std::size_t column, dtype type, void* to) const;
  /// Blanks around a field count unless they are `ignored`.
  bool is_empty(std::size_t column, bool blanks_ignored) const;
  class state;
  std::unique_ptr<state> state_;
};

template <class... Ts>
class csv_source {
 public:
  csv_source(const std::string& file, const csv_options& options)
      : rows_(file, options, sizeof...(Ts)) {}
  bool next(std::optional<std::tuple<Ts...>>& element) {
    if (!rows_.next_row()) return false;
    if (!element) element.emplace();
    [&]<std::size_t... Nth>(std::index_sequence<Nth...>) {
      (rows_.get(Nth, std::get<Nth>(*element)), ...);
    }
    (std::index_sequence_for<Ts...>());
    return true;
  }

 private:
  csv_reader rows_;
};

template <class T>
inline constexpr bool is_csv_field = element<T>;
template <class T>
inline constexpr bool is_csv_field<std::optional<T>> = is_csv_field<T>;

}  // namespace detail

/// The rows of CSV files, plain or gzip (detected by their content), with a component of the given
/// type for each column: a number, a bool (0, 1, false or true), a std::string, or an optional of
/// one of these, which is empty where the field is. A field in double quotes may contain
/// separators, line ends, and double quotes, written twice (RFC 4180). Blanks around numbers and
/// blank lines are ignored.
///
///     csv<float, float, std::int32_t>("flowers.csv", {.header = true})
///         .map([](float length, float width, std::int32_t species) { … })
///
/// Throws invalid_argument if the options contradict each other. A pass throws not_found if there
/// is no such file or a file has no such column, invalid_argument if it has two of a chosen name,
/// unavailable if it cannot be read, data_loss with the file, line and column of a field that is
/// not of its type, and of a row with too few or too many fields.
template <class... Ts>
dataset<Ts...> csv(file_names files, csv_options options = {}) {
  if constexpr (sizeof...(Ts) > 0 && (detail::is_csv_field<Ts> && ...)) {
    detail::check_csv(options, sizeof...(Ts));
    return dataset<Ts...>(
        std::make_shared<
            detail::file_stage<std::tuple<Ts...>, detail::csv_source<Ts...>, csv_options>>(
            std::move(files), std::move(options)));
  } else {
    static_assert(sizeof...(Ts) > 0 && (detail::is_csv_field<Ts> && ...),
                  "[csv] columns are of the types " DEFT_ELEMENT_TYPES
                  ", or an std::optional of one of these");
    return dataset<Ts...>(detail::stage_ref<typename dataset<Ts...>::value_type>());
  }
}

}  // namespace deft
