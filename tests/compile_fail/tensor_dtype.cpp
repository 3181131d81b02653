// build error: \[tensor\] the expression has another dtype than the tensor that names it
// got: takes<tensor<double,3>,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
tensor<double, 3> y = x * 2;
