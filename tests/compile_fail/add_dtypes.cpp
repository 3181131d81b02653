// build error: \[elementwise\] an operation expects operands of one dtype, and got several
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<double, 3> y("y");
auto z = x + y;
