// build error: \[elementwise\] the operation is not defined for operands of this dtype
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto z = x % 2.f;
