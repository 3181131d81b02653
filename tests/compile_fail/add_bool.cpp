// build error: \[elementwise\] the operation expects numbers, and got bool
#include <deft/expr.hpp>
using namespace deft;
placeholder<bool, 3> x("x");
auto z = x + x;
