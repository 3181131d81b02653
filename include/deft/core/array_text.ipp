// SPDX-License-Identifier: Apache-2.0
// deft/core/array_text.ipp: host values as text, in the format of NumPy's default options.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <deft/core/any_array.hpp>
#include <deft/core/printable.hpp>
#include <string>
#include <string_view>
#include <system_error>

namespace deft {
namespace {

/// `v` in the fewest digits that read back as `v`, rounded to at most `most` digits after the
/// point.
template <class T>
std::string digits_of(T v, std::chars_format form, int most) {
  char text[512];
  const std::string_view all(text, std::to_chars(text, text + sizeof text, v, form).ptr);
  const std::size_t point = all.find('.');
  if (point == all.npos) return std::string(all);
  const std::size_t end = std::min(all.find('e'), all.size());
  if (end - point - 1 <= static_cast<std::size_t>(most)) return std::string(all);
  std::string s(text, std::to_chars(text, text + sizeof text, v, form, most).ptr);
  const std::size_t exponent = std::min(s.find('e'), s.size());
  std::size_t last = exponent;
  while (s[last - 1] == '0') --last;
  return s.erase(last, exponent - last);
}

/// A floating number in its parts.
struct number_parts {
  std::string whole, fraction, exponent;  ///< "-1", "25", "e+10"

  template <class T>
  number_parts(T v, bool scientific)
      : number_parts(digits_of(
            v, scientific ? std::chars_format::scientific : std::chars_format::fixed, 8)) {}
  explicit number_parts(std::string s) {
    if (std::size_t e = s.find('e'); e != s.npos) {
      exponent = s.substr(e);
      s.erase(e);
    }
    const std::size_t point = s.find('.');
    whole = s.substr(0, point);
    if (point != s.npos) fraction = s.substr(point + 1);
  }
};

/// How the elements of one array are written: of equal width, with aligned points.
/// It has seen the elements that are shown before it writes the first.
template <class T>
class element_format {
 public:
  void see(T v) { width_ = std::max(width_, ext::str(v).size()); }
  void seen() {}
  std::string operator()(T v) const {
    const std::string s = ext::str(v);
    return std::string(width_ - s.size(), ' ') + s;
  }
  static std::string scalar(T v) { return ext::str(v); }

 private:
  std::size_t width_ = 0;
};

template <>
class element_format<bool> {
 public:
  void see(bool) {}
  void seen() {}
  std::string operator()(bool v) const { return v ? " True" : "False"; }
  static std::string scalar(bool v) { return v ? "True" : "False"; }
};

/// In quotes, with everything escaped that would not be shown as it is.
template <>
class element_format<std::string> {
 public:
  void see(std::string_view) {}
  void seen() {}
  std::string operator()(std::string_view v) const { return quoted(v, 256); }
  static std::string scalar(std::string_view v) { return quoted(v, 4096); }

 private:
  static std::string quoted(std::string_view v, std::size_t most) {
    std::string text = "\"";
    for (const char c :
         v.substr(0, most + 4)) {  // more than are shown, as it is seen that it is cut off
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    return ext::printable(text, most) + "\"";
  }
};

template <std::floating_point T>
class element_format<T> {
 public:
  /// Twice for each element: the widths depend on the form, and the form on all elements.
  void see(T v) {
    if (measuring_) {
      measure(v);
    } else if (std::isfinite(v) && v != 0) {
      const T size = std::abs(v);
      least_ = any_ ? std::min(least_, size) : size;
      most_ = any_ ? std::max(most_, size) : size;
      any_ = true;
    }
  }
  /// Between the two.
  void seen() {
    measuring_ = true;
    scientific_ =
        any_ && (most_ >= largest_positional || least_ < T(1e-4) || most_ / least_ > T(1000));
  }
  std::string operator()(T v) const {
    const std::size_t right =
        fraction_ + (exponent_ ? exponent_ + 2 : 0);  // "e" and the sign; the point is not in it
    const std::size_t width = std::max(whole_ + (point_ ? 1 + right : 0), special_);
    std::string s;
    if (std::isnan(v) || std::isinf(v)) {
      s = scalar(v);
    } else {
      number_parts parts(v, scientific_);
      if (scientific_ && parts.fraction.size() < fraction_) parts = exactly(v);
      s = parts.whole + "." + parts.fraction;
      if (!scientific_) {
        s.append(fraction_ - parts.fraction.size(), ' ');
      } else {
        s += parts.exponent.substr(0, 2);
        s.append(exponent_ - (parts.exponent.size() - 2), '0');
        s += parts.exponent.substr(2);
      }
    }
    return std::string(width - s.size(), ' ') + s;
  }
  /// As Python prints a number.
  static std::string scalar(T v) {
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    const T size = std::abs(v);
    const bool scientific =
        v != 0 && (size < T(1e-4) || size >= (std::same_as<T, float> ? T(1e6) : T(1e16)));
    std::string s =
        digits_of(v, scientific ? std::chars_format::scientific : std::chars_format::fixed, 512);
    if (!scientific && s.find('.') == s.npos) s += ".0";
    return s;
  }

 private:
  void measure(T v) {
    if (!std::isfinite(v)) {
      special_ = std::max(special_, scalar(v).size());
      return;
    }
    const number_parts parts(v, scientific_);
    point_ = true;
    whole_ = std::max(whole_, parts.whole.size());
    fraction_ = std::max(fraction_, parts.fraction.size());
    if (scientific_) exponent_ = std::max(exponent_, parts.exponent.size() - 2);
  }

  /// With as many digits as the others: further ones of `v` itself where its shortest form ends.
  number_parts exactly(T v) const {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, v, std::chars_format::scientific,
                                   static_cast<int>(fraction_));
    return number_parts(std::string(text, end.ptr));
  }

  static constexpr T largest_positional = std::same_as<T, float> ? T(1e6) : T(1e8);

  bool measuring_ = false, any_ = false, scientific_ = false, point_ = false;
  T least_ = 0, most_ = 0;
  std::size_t whole_ = 0, fraction_ = 0, exponent_ = 0, special_ = 0;
};

template <class T>
requires ext::is_half_type<T>
class element_format<T> : public element_format<float> {
 public:
  void see(T v) { element_format<float>::see(ext::printed_value(v)); }
  std::string operator()(T v) const {
    return element_format<float>::operator()(ext::printed_value(v));
  }
  static std::string scalar(T v) { return element_format<float>::scalar(ext::printed_value(v)); }
};

/// More than 1,000 elements show the first and last three of each axis; lines end before column 75.
template <class T>
class array_printer {
 public:
  explicit array_printer(const any_array& a)
      : elements_(elements_of(a)), shape_(a.shape()), shortens_(a.elements() > 1000) {
    std::int64_t stride = 1;
    for (int i = shape_.rank() - 1; i >= 0; --i) {
      strides_[i] = stride;
      stride *= shape_[i];
    }
  }

  std::string print() {
    if (shape_.rank() == 0) return element_format<T>::scalar(elements_[0]);
    if (shape_.elements() == 0) return "[]";
    visit(0, 0);
    format_.seen();
    visit(0, 0);
    print_axis(0, 0);
    return std::move(out_);
  }

 private:
  static auto elements_of(const any_array& a) {
    if constexpr (ext::plain_element<T>)
      return a.data<T>();
    else
      return a.strings();
  }
  static constexpr std::int64_t shown = 3;  // at each end of a long axis
  static constexpr std::size_t columns = 75;

  template <class F>
  void each(int axis, F f) const {
    const std::int64_t n = shape_[axis];
    const bool cut = shortens_ && n > 2 * shown;
    for (std::int64_t i = 0; i < n; ++i) {
      if (cut && i == shown) i = n - shown;
      f(i, cut && i == n - shown);
    }
  }
  void visit(int axis, std::int64_t at) {
    if (axis == shape_.rank())
      format_.see(elements_[at]);
    else
      each(axis, [&](std::int64_t i, bool) { visit(axis + 1, at + i * strides_[axis]); });
  }
  void print_axis(int axis, std::int64_t at) {
    out_ += '[';
    if (axis == shape_.rank() - 1)
      print_row(at);
    else
      print_parts(axis, at);
    out_ += ']';
  }
  void print_parts(int axis, std::int64_t at) {
    const auto next = [&] {
      out_.append(static_cast<std::size_t>(shape_.rank() - 1 - axis), '\n');
      out_.append(static_cast<std::size_t>(axis + 1), ' ');
    };
    each(axis, [&](std::int64_t i, bool after_cut) {
      if (i > 0) next();
      if (after_cut) out_ += "...", next();
      print_axis(axis + 1, at + i * strides_[axis]);
    });
  }
  void print_row(std::int64_t at) {
    const std::size_t indent = static_cast<std::size_t>(shape_.rank());
    // Room for the brackets that may follow.
    const std::size_t end = columns - indent;
    std::size_t used = indent;
    bool first = true;
    const auto word = [&](const std::string& w) {
      if (!first) {
        out_ += ' ';
        ++used;
      }
      if (used + w.size() > end && used > indent) {
        out_.erase(out_.find_last_not_of(' ') + 1);
        out_ += '\n';
        out_.append(indent, ' ');
        used = indent;
      }
      out_ += w;
      used += w.size();
      first = false;
    };
    each(shape_.rank() - 1, [&](std::int64_t i, bool after_cut) {
      if (after_cut) word("...");
      word(format_(elements_[at + i]));
    });
  }

  decltype(elements_of({})) elements_;
  const dims shape_;
  const bool shortens_;
  std::int64_t strides_[max_rank] = {};
  element_format<T> format_;
  std::string out_;
};

}  // namespace

std::string to_string(const any_array& a) {
  if (!a.valid()) return "none";
  return ext::visit_dtype_in<ext::all_dtypes>(
      a.type(), [&]<class T>() { return array_printer<T>(a).print(); });
}

}  // namespace deft
