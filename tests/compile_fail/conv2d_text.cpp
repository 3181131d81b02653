// build error: \[conv2d\] expects stride and padding
// got: takes<conv2d,tensor<float,-1,28,28,1>,tensor<float,5,5,1,32>,int,char5>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
placeholder<float, 5, 5, 1, 32> w("w");
auto y = conv2d(x, w, 2, "SAME");
