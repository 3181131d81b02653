// SPDX-License-Identifier: Apache-2.0
// deft/op/einsum.hpp: sums of products by the letters of axes; transposes, sums and products of
// matrices.
#pragma once
#include <array>
#include <deft/op/base/shapes.hpp>
#include <string_view>

namespace deft::op {
struct einsum;  ///< only messages use this name
}

namespace deft {

namespace detail {

/// The letters of a tensor's axes, in their order.
struct axis_letters {
  char at[max_rank + 1] = {};
  int n = 0;

  /// Where `c` is; -1 if it is not there.
  constexpr int find(char c) const {
    for (int i = 0; i < n; ++i)
      if (at[i] == c) return i;
    return -1;
  }
  constexpr bool has(char c) const { return find(c) >= 0; }
  constexpr void add(char c) { at[n++] = c; }
  constexpr const char* begin() const { return at; }
  constexpr const char* end() const { return at + n; }
  friend constexpr bool operator==(const axis_letters& x, const axis_letters& y) {
    return std::string_view(x.at, static_cast<std::size_t>(x.n)) ==
           std::string_view(y.at, static_cast<std::size_t>(y.n));
  }
};

/// What `"bij,jk->bik"` says of N operands and the result.
template <std::size_t N>
struct einsum_subscripts {
  enum class fault { none, character, ellipsis, diagonal, rank, unknown, repeated };
  std::array<axis_letters, N> in;
  axis_letters out;
  fault wrong = fault::none;

  explicit constexpr einsum_subscripts(std::string_view text) {
    const std::size_t arrow = text.find("->");
    std::size_t operand = 0;
    for (char c : text.substr(0, arrow))
      if (c == ',')
        ++operand;
      else
        take(in[operand], c, fault::diagonal);
    if (arrow == text.npos) {
      for (char c : alphabet)
        if (uses(c) == 1) take(out, c, fault::repeated);
      return;
    }
    for (char c : text.substr(arrow + 2)) {
      take(out, c, fault::repeated);
      if (wrong == fault::none && c != ' ' && uses(c) == 0) wrong = fault::unknown;
    }
  }

 private:
  static constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

  constexpr int uses(char c) const {
    int n = 0;
    for (const auto& letters : in) n += letters.has(c);
    return n;
  }
  constexpr void take(axis_letters& to, char c, fault twice) {
    if (wrong != fault::none || c == ' ') return;
    if (c == '.')
      wrong = fault::ellipsis;
    else if (alphabet.find(c) == alphabet.npos)
      wrong = fault::character;
    else if (to.has(c))
      wrong = twice;
    else if (to.n == max_rank)
      wrong = fault::rank;
    else
      to.add(c);
  }
};

/// The extent of an axis `c` of operands of these shapes, as far as it is known; `dyn` if no
/// operand has it. False if they differ.
constexpr bool extent_of_letter(char c, std::span<const axis_letters> in,
                                std::span<const dims> shapes, std::int64_t& extent) {
  extent = dyn;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const int axis = in[i].find(c);
    if (axis < 0 || shapes[i].e[axis] == dyn) continue;
    if (extent != dyn && extent != shapes[i].e[axis]) return false;
    extent = shapes[i].e[axis];
  }
  return true;
}
/// The first letter whose extents differ; 0 if there is none.
constexpr char disagreeing_letter(std::span<const axis_letters> in, std::span<const dims> shapes) {
  std::int64_t extent = 0;
  for (const auto& letters : in)
    for (char c : letters)
      if (!extent_of_letter(c, in, shapes, extent)) return c;
  return 0;
}

/// The number of operands that a text is for.
constexpr std::size_t operands_of(std::string_view text) {
  std::size_t n = 1;
  for (char c : text.substr(0, text.find("->"))) n += c == ',';
  return n;
}

/// The type of `"…"_es`.
template <char... C>
struct einsum_text {
  static constexpr char text[] = {C..., '\0'};
  static constexpr std::string_view view{text, sizeof...(C)};
  static constexpr std::size_t operands = operands_of(view);
  static constexpr einsum_subscripts<operands> value{view};
};
/// A string as a template argument.
template <std::size_t N>
struct text_argument {
  char at[N] = {};
  constexpr text_argument(const char (&s)[N]) {  // NOLINT: implicit on purpose
    for (std::size_t i = 0; i < N; ++i) at[i] = s[i];
  }
  static constexpr std::size_t size = N - 1;
};
template <char C>
struct letter;  ///< only messages use this name

template <class Text, class... Shape>
inline constexpr bool one_letter_per_axis = [] {
  int i = 0;
  return ((Text::value.in[static_cast<std::size_t>(i++)].n == Shape::value.n) && ...);
}();
template <class Text, class... Shape>
struct einsum_shape : typed_shape<einsum_shape<Text, Shape...>> {
  static constexpr std::array<dims, sizeof...(Shape)> shapes{Shape::value...};
  static constexpr char wrong = disagreeing_letter(Text::value.in, shapes);
  static constexpr bool make(dims& out) {
    for (char c : Text::value.out) {
      std::int64_t extent = 0;
      if (!extent_of_letter(c, Text::value.in, shapes, extent)) return false;
      out.push_back(extent);
    }
    return true;
  }
};

/// Writes what `text` says, of which `in` and `out` are the letters.
any_tensor contract(std::string_view text, std::span<const axis_letters> in,
                    const axis_letters& out, std::span<const any_tensor> x);

template <class Text, class... X>
constexpr bool refuse_subscripts() {
  using fault = typename einsum_subscripts<Text::operands>::fault;
  constexpr fault f = Text::value.wrong;
  if constexpr (f == fault::character)
    static_assert(takes<op::einsum, Text>,
                  "[einsum] expects letters of axes, with commas between operands and -> in front "
                  "of the result, and got another character");
  else if constexpr (f == fault::ellipsis)
    static_assert(takes<op::einsum, Text>,
                  "[einsum] expects a letter for each axis, and got an ellipsis");
  else if constexpr (f == fault::diagonal)
    static_assert(takes<op::einsum, Text>,
                  "[einsum] expects each letter of an operand once, and got one twice: it takes "
                  "no diagonals");
  else if constexpr (f == fault::rank)
    static_assert(takes<op::einsum, Text>,
                  "[einsum] expects 8 letters at most for each tensor, and got more");
  else if constexpr (f == fault::unknown)
    static_assert(takes<op::einsum, Text>,
                  "[einsum] expects letters of operands in the result, and got one that none has");
  else if constexpr (f == fault::repeated)
    static_assert(takes<op::einsum, Text>,
                  "[einsum] expects each letter of the result once, and got one twice");
  else if constexpr (Text::operands != sizeof...(X))
    static_assert(takes<op::einsum, Text, got<X>...>,
                  "[einsum] expects as many operands as there are between the commas, and got "
                  "another number");
  return f != fault::none || Text::operands != sizeof...(X);
}

}  // namespace detail

/// The subscripts of einsum: `"bij,jk->bik"_es`.
template <detail::text_argument Text>
constexpr auto operator""_es() {
  return []<std::size_t... Index>(std::index_sequence<Index...>) {
    return detail::einsum_text<Text.at[Index]...>();
  }
  (std::make_index_sequence<Text.size>());
}

namespace detail {
/// einsum of operands at `w`, a location that may be unknown.
template <class K, char... C, class... X>
auto einsum_at(source_location w, einsum_text<C...> text, const X&... x) {
  using text_type = einsum_text<C...>;
  if constexpr ((std::same_as<X, refused> || ...)) {
    return refused();
  } else if constexpr (refuse_subscripts<text_type, X...>()) {
    return refused();
  } else {
    const auto written = [&] {
      const any_tensor all[] = {any_tensor(any_lower<K>(x, w))...};
      const location_scope on_behalf(w);
      return contract(text.view, text.value.in, text.value.out, all);
    };
    if constexpr (!(typed_expression<X> && ...)) {
      return written();
    } else if constexpr (!one_value_type<X...>) {
      static_assert(takes<op::einsum, got<X>...>,
                    "[einsum] expects operands of one dtype, and got several: use cast<T>(x)");
      return refused();
    } else if constexpr (!one_letter_per_axis<text_type, shape_type_of<X>...>) {
      static_assert(takes<op::einsum, text_type, got<X>...>,
                    "[einsum] expects a letter for each axis of an operand, and got another "
                    "number of letters");
      return refused();
    } else {
      using S = einsum_shape<text_type, shape_type_of<X>...>;
      if constexpr (S::wrong != 0) {
        static_assert(takes<op::einsum, letter<S::wrong>, got<X>...>,
                      "[einsum] expects axes of one letter to have one extent, and got different "
                      "ones");
        return refused();
      } else {
        using T = value_type_of<std::tuple_element_t<0, std::tuple<X...>>>;
        return tensor_of<T, S>(written().handle());
      }
    }
  }
}
}  // namespace detail

/// Sums of products by the letters of axes: `einsum("bij,jk->bik"_es, a, b)` is, for each b, i and
/// k, the sum over j of a[b,i,j] b[j,k]. Each operand has a letter for each axis, all axes of one
/// letter have one extent, and letters that the result does not have are summed over. Without `->`
/// the result has the letters that occur once, in alphabetical order, upper case first.
///
/// Operands are taken from left to right. Two of them are one product of matrices, in batches along
/// letters that both have and keep; axes are moved in memory where matmul's transposed forms do not
/// do. Without a letter to sum over they are multiplied elementwise.
///
/// Wrong letters and operands that do not match are a compile error where the types show it;
/// otherwise it throws invalid_argument; for `dyn` extents the run does, except for an extent of 1
/// along a letter that is kept, which it broadcasts.
/// @{
template <char... C, ext::expression A, class K = ext::kernels_for<A>>
auto einsum(detail::einsum_text<C...> text, const A& a, ext::source_location w = ext::here()) {
  return detail::einsum_at<K>(w, text, a);
}
template <char... C, ext::expression A, ext::expression B,
          class K = ext::kernels_for<std::tuple<A, B>>>
auto einsum(detail::einsum_text<C...> text, const A& a, const B& b,
            ext::source_location w = ext::here()) {
  return detail::einsum_at<K>(w, text, a, b);
}
template <char... C, ext::expression A, ext::expression B, ext::expression D,
          class K = ext::kernels_for<std::tuple<A, B, D>>>
auto einsum(detail::einsum_text<C...> text, const A& a, const B& b, const D& d,
            ext::source_location w = ext::here()) {
  return detail::einsum_at<K>(w, text, a, b, d);
}
template <char... C, ext::expression... X, class K = ext::kernels_for<std::tuple<X...>>>
requires(sizeof...(X) == 0 || sizeof...(X) > 3) auto einsum(detail::einsum_text<C...> text,
                                                            const X&... x) {
  return detail::einsum_at<K>({}, text, x...);
}
/// @}
/// @cond refused
template <class Text, class... X>
requires std::convertible_to<const Text&, std::string_view> detail::refused einsum(const Text&,
                                                                                   const X&...) {
  static_assert(detail::takes<op::einsum, detail::got<X>...>,
                "[einsum] expects its subscripts as \"ij,jk->ik\"_es, and got a string");
  return {};
}
/// @endcond

}  // namespace deft
