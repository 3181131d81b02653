// build error: \[elementwise\] the operation expects float or double
#include <deft/expr.hpp>

namespace {
struct softsign : deft::op::elementwise<1, deft::typing::floating> {
  static constexpr std::string_view name = "softsign";

  template <class V>
  V operator()(V x) const {
    return x;
  }
};
}  // namespace

int main() {
  deft::placeholder<int, 3> x("x");
  deft::make<softsign>(deft::here(), x);
}
