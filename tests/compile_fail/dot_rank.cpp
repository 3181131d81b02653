// build error: \[dot\] expects two vectors, and got another rank
// got: takes<dot,tensor<float,3,4>,tensor<float,4>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<float, 4> y("y");
auto z = dot(x, y) + 1;
