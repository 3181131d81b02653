// build error: \[elementwise\] the operands' shapes cannot be broadcast together
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 4, 3> x("x");
placeholder<float, 4> y("y");
auto z = x + y;
