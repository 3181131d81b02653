// build error: \[assign\] expects an expression, a number, an ndarray
// got: takes<assign,variable<float,2>,
#include <deft/expr.hpp>
using namespace deft;
variable<float, 2> w("w", zeros());
auto f(const float* p) { return w.assign(p); }
