// build error: one sentence with (brackets|parentheses)
template <class T>
inline constexpr bool rule = sizeof(T) == 0;
template <class T>
void f(T) {
  static_assert(rule<T>, "one sentence with parentheses");
}
void g() { f(1); }
