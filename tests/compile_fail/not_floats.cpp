// build error: \[elementwise\] the operation expects bool: compare with 0
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto z = !x;
