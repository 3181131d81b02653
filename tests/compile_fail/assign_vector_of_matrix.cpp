// build error: \[assign\] expects a value of the variable's shape, and got another
#include <deft/expr.hpp>
using namespace deft;
#include <vector>
variable<float, 2, 2> w("w", zeros());
auto f(const std::vector<float>& v) { return w.assign(v); }
