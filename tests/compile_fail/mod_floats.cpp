// build error: \[elementwise\] the operation expects integers
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto z = x % 2.f;
