// build error: \[elementwise\] expects float or double, and got another dtype: use cast<float>\(x\)
// got: takes<{anonymous}::softsign,tensor<int,3>>
#include <deft/expr.hpp>

namespace {
struct softsign : deft::op::elementwise<1, deft::ext::typing::floating> {
  static constexpr std::string_view name = "softsign";

  template <class V>
  V operator()(V x) const {
    return x;
  }
};
}  // namespace

int main() {
  deft::placeholder<int, 3> x("x");
  deft::ext::make<softsign>(deft::ext::here(), x);
}
