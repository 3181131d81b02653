// build error: \[outer\] expects two vectors, and got another rank
// got: takes<outer,tensor<float,3>,tensor<float>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<float> y("y");
auto z = outer(x, y) + 1;
