// build error: \[equal\] expects operands of one dtype, and got several
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::string, 3> x("x");
placeholder<float, 3> y("y");
auto z = x == y;
