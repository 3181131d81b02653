// SPDX-License-Identifier: Apache-2.0
// tests/op/cases.hpp: cases of operations as data, and how they are read.
//
//     # what stands behind a # at the start of a line is a comment
//     sum axes=(0,-1) keepdims=true     an operation of the catalog and its attributes
//       for float int32                 the dtypes that T stands for; or `for numbers`, `for
//       floats` in {{1, 2}, {3, 4}}             an array of T; or int32{0, 1}, 5, (2,3){7}, (9){1,
//       2, ...} out {{10}}                      what it yields, one line for each output within 2
//       units in the last place; without this line, the same value within 2 of 1 and of what is
//       smaller than 1, those of 1 error [sum] expects axes        in the place of outputs: words
//       of the message
//
// Without `for`, T is each dtype that the shape rule takes, bool too if it does. Of `numbers` and
// `floats`, bfloat16 and half are left out where they do not have the case's values. Values are
// numbers, true, false, nan, inf, and max, lowest and tiny (the smallest positive one) of the
// dtype. As an output, -0 and +0 are what they say, and 0 is either. With a shape, one value fills
// it, and dots continue two.
#pragma once
#include <algorithm>
#include <charconv>
#include <deft/core/any_array.hpp>
#include <deft/graph/op_def.hpp>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace testing {

/// Where in a table something stands.
struct case_location {
  std::string file;
  unsigned line = 0;
  friend std::string to_string(const case_location& p) {
    return deft::ext::str(p.file, ':', p.line);
  }
};
template <class... A>
[[noreturn]] void refuse_case(const case_location& at, const A&... message) {
  deft::ext::fail(deft::errc::invalid_argument, to_string(at), ": ", message...);
}

/// An array as it is written; its elements depend on the dtype.
struct written_array {
  case_location at;
  deft::dtype type = deft::dtype::none;  ///< none: T
  deft::dims shape;
  std::vector<std::string> values;
};

struct op_case {
  case_location at;
  std::string op;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<deft::dtype> types;  ///< empty: not said
  bool any_type = false;           ///< `types` are those of numbers or floats
  std::vector<written_array> inputs, outputs;
  std::string error;
  double ulps = 0;
  double least = 0;  ///< of smaller numbers the units are those of this one

  /// Whether anything of the case is of dtype T.
  bool has_t() const {
    for (const auto& a : attributes)
      if (a.second == "T") return true;
    for (const auto* list : {&inputs, &outputs})
      for (const auto& a : *list)
        if (a.type == deft::dtype::none) return true;
    return false;
  }
};

inline deft::dtype dtype_by_name(std::string_view name) {
  return deft::ext::dtype_named(&deft::ext::element_names::tensorflow, name);
}

/// Reads `dtype(extents){{values}, …}`, in which the dtype and the extents can be left out.
class array_reader {
 public:
  array_reader(std::string_view text, case_location at) : rest_(text) { read_.at = std::move(at); }

  written_array read() {
    const std::string_view word = take_word();
    bool scalar = false;
    if (deft::dtype t = dtype_by_name(word); t != deft::dtype::none)
      read_.type = t;
    else if (!word.empty())
      read_.values.emplace_back(word), scalar = true;
    if (!scalar && taken('(')) {
      while (!taken(')')) {
        std::int64_t e = -1;
        const std::string_view extent = take_word();
        const auto end = std::from_chars(extent.data(), extent.data() + extent.size(), e);
        if (end.ptr != extent.data() + extent.size() || e < 0)
          refuse_case(read_.at, '"', extent, "\" is not an extent");
        read_.shape.push_back(e);
        taken(',');
      }
      expect('{');
      list_of_shape();
    } else if (!scalar && taken('{')) {
      list(0);
      for (auto e : extents_) read_.shape.push_back(e);
    } else if (!scalar) {
      read_.values.emplace_back(take_word());  // float 5
      if (read_.values[0].empty()) refuse_case(read_.at, "expected an array, at \"", rest_, '"');
    }
    skip();
    if (!rest_.empty()) refuse_case(read_.at, "\"", rest_, "\" stands behind an array");
    return std::move(read_);
  }

 private:
  void skip() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool taken(char c) {
    skip();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!taken(c)) refuse_case(read_.at, "expected ", c, " at \"", rest_, '"');
  }
  std::string_view take_word() {
    skip();
    const std::string_view word = rest_.substr(0, rest_.find_first_of(" ,{}()"));
    rest_.remove_prefix(word.size());
    return word;
  }
  void value() {
    const std::string_view word = take_word();
    if (word.empty()) refuse_case(read_.at, "expected a value at \"", rest_, '"');
    read_.values.emplace_back(word);
  }
  void list_of_shape() {
    while (!taken('}')) {
      value();
      taken(',');
    }
    auto& v = read_.values;
    const auto n = static_cast<std::size_t>(read_.shape.elements());
    if (v.size() == 1 && n != 0) v.assign(n, std::string(v[0]));
    const bool continued = v.size() == 3 && v[2] == "...";
    if (v.size() != n && !(continued && n > 2))
      refuse_case(read_.at, v.size(), " values for an array of ", read_.shape);
  }
  /// What follows an opening brace.
  void list(std::size_t depth) {
    std::int64_t n = 0;
    if (depth == extents_.size()) {
      if (leaf_) refuse_case(read_.at, "an array's braces are not equally deep");
      extents_.push_back(-1);
    }
    while (!taken('}')) {
      if (taken('{'))
        list(depth + 1);
      else {
        if (depth + 1 != extents_.size())
          refuse_case(read_.at, "an array's braces are not equally deep");
        leaf_ = true;
        value();
      }
      ++n;
      taken(',');
    }
    if (extents_[depth] == -1) extents_[depth] = n;
    if (extents_[depth] != n)
      refuse_case(read_.at, "lists of ", extents_[depth], " and of ", n, " on one level");
  }

  std::string_view rest_;
  written_array read_;
  std::vector<std::int64_t> extents_;
  bool leaf_ = false;
};

/// A value as an element of a dtype.
template <class T>
T element_from(std::string_view word, const case_location& at) {
  using limits = std::numeric_limits<T>;
  const auto refuse = [&]() { refuse_case(at, '"', word, "\" is not a ", deft::dtype_of<T>); };
  if constexpr (std::is_same_v<T, bool>) {
    if (word != "true" && word != "false") refuse();
    return word == "true";
  } else {
    if (word == "max") return limits::max();
    if (word == "lowest") return limits::lowest();
    if constexpr (deft::ext::is_floating_type<T>) {
      if (word == "tiny") return limits::denorm_min();
      if (word == "-tiny") return -limits::denorm_min();
    }
    if (word.starts_with('+')) word.remove_prefix(1);
    std::conditional_t<deft::ext::is_half_type<T>, double, T> v{};
    const auto end = std::from_chars(word.data(), word.data() + word.size(), v);
    if (end.ec != std::errc() || end.ptr != word.data() + word.size()) refuse();
    return static_cast<T>(v);
  }
}

/// The array with `t` as T.
inline deft::any_array array_from(const written_array& w, deft::dtype t) {
  deft::any_array a(w.type == deft::dtype::none ? t : w.type, w.shape);
  deft::ext::visit_dtype(a.type(), [&]<class T>() {
    T* const to = a.mutable_data<T>();
    const bool continued = w.values.size() == 3 && w.values[2] == "...";
    const auto written = continued ? 2 : static_cast<std::int64_t>(w.values.size());
    for (std::int64_t i = 0; i < written; ++i)
      to[i] = element_from<T>(w.values[static_cast<std::size_t>(i)], w.at);
    if (!continued) return;
    if constexpr (std::is_same_v<T, bool>) {
      refuse_case(w.at, "dots between numbers only");
    } else {
      using wide = std::conditional_t<deft::ext::is_floating_type<T>, double, std::int64_t>;
      const wide first = to[0], step = static_cast<wide>(to[1]) - first;
      for (std::int64_t i = 2; i < a.elements(); ++i) {
        const wide next = first + static_cast<wide>(i) * step;
        if constexpr (std::is_integral_v<T>)
          if (!std::in_range<T>(next)) refuse_case(w.at, next, " is not a ", a.type());
        to[i] = static_cast<T>(next);
      }
    }
  });
  return a;
}

/// "(0,-1)", where ? is an extent that only a run knows.
inline deft::ext::integers integers_from(std::string_view text, const case_location& at) {
  deft::ext::integers all;
  if (!text.starts_with('(') || !text.ends_with(')'))
    refuse_case(at, "expected a list such as (0,1), and got ", text);
  for (text = text.substr(1, text.size() - 2); !text.empty();) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    all.push_back(word == "?" ? deft::dyn : element_from<std::int64_t>(word, at));
  }
  return all;
}

/// An attribute of the kind of `like`, with `t` as T.
inline deft::ext::attr_value attribute_from(const deft::ext::attr_value& like,
                                            const std::string& text, deft::dtype t,
                                            const case_location& at) {
  if (std::holds_alternative<std::int64_t>(like)) {
    if (text == "true" || text == "false") return std::int64_t{text == "true"};
    const deft::dtype named = text == "T" ? t : dtype_by_name(text);
    if (named != deft::dtype::none) return static_cast<std::int64_t>(named);
    return element_from<std::int64_t>(text, at);
  }
  if (std::holds_alternative<double>(like)) return element_from<double>(text, at);
  if (std::holds_alternative<deft::ext::integers>(like)) return integers_from(text, at);
  if (std::holds_alternative<std::string>(like)) return text;
  refuse_case(at, "an attribute of a kind that cases cannot have: ", text);
}

/// The cases of a table. Throws invalid_argument, with file and line, for what is not one.
inline std::vector<op_case> read_cases(std::string_view text, const std::string& file) {
  std::vector<op_case> all;
  const auto finish = [&] {
    if (all.empty()) return;
    const op_case& c = all.back();
    if (c.outputs.empty() == c.error.empty())
      refuse_case(c.at, "expected either outputs or an error");
    if (!c.types.empty() && !c.has_t()) refuse_case(c.at, "dtypes for T, which nothing is of");
    if (!c.error.empty() && c.types.empty() && c.has_t())
      refuse_case(c.at, "an error of T needs a line with dtypes: for float int32");
  };
  case_location at{file, 0};
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++at.line;
    while (line.ends_with(' ')) line.remove_suffix(1);
    const bool inside = line.starts_with(' ');
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (line.empty() || line.starts_with('#')) continue;
    const std::string_view word = line.substr(0, line.find(' '));
    std::string_view rest = line.substr(word.size());
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    const auto each = [&](auto f) {
      while (!rest.empty()) {
        const std::string_view next = rest.substr(0, rest.find(' '));
        f(next);
        rest.remove_prefix(next.size());
        while (rest.starts_with(' ')) rest.remove_prefix(1);
      }
    };
    if (!inside) {
      finish();
      op_case& begun = all.emplace_back();
      begun.at = at;
      begun.op = word;
      each([&](std::string_view attribute) {
        const std::size_t equals = attribute.find('=');
        if (equals == attribute.npos)
          refuse_case(at, "expected name=value, and got \"", attribute, '"');
        all.back().attributes.emplace_back(attribute.substr(0, equals),
                                           attribute.substr(equals + 1));
      });
      continue;
    }
    if (all.empty()) refuse_case(at, "expected an operation at the start of a line");
    op_case& c = all.back();
    if (word == "for") {
      each([&](std::string_view name) {
        if (name == "numbers" || name == "floats") {
          for (const deft::dtype t : deft::ext::every_plain_dtype)
            if (name == "numbers" ? deft::ext::is_numeric(t) : deft::ext::is_floating(t))
              c.types.push_back(t);
          c.any_type = true;
          return;
        }
        c.types.push_back(dtype_by_name(name));
        if (c.types.back() == deft::dtype::none) refuse_case(at, name, " is not a dtype");
      });
    } else if (word == "in" || word == "out") {
      // The rest of an array may be on the next lines.
      std::string array(rest);
      const case_location first = at;
      while (std::count(array.begin(), array.end(), '{') >
                 std::count(array.begin(), array.end(), '}') &&
             !text.empty()) {
        const std::string_view next = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), next.size() + 1));
        ++at.line;
        array += ' ';
        array += next;
      }
      (word == "in" ? c.inputs : c.outputs).push_back(array_reader(array, first).read());
    } else if (word == "within") {
      const std::size_t of = rest.find(" of ");
      c.ulps = element_from<double>(rest.substr(0, of), at);
      if (of != rest.npos) c.least = element_from<double>(rest.substr(of + 4), at);
    } else if (word == "error" && !rest.empty()) {
      c.error = rest;
    } else {
      refuse_case(at, "expected for, in, out, within or error, and got \"", word, '"');
    }
  }
  finish();
  return all;
}

/// A file of tests/op/cases; CMake puts them into the program.
struct case_table {
  const char *file, *text;
};
extern const std::vector<case_table> case_tables;

}  // namespace testing
