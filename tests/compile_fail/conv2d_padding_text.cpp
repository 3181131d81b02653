// build error: \[conv2d\] expects stride and padding as in conv2d\(x, w, stride<2>, padding::same\)
// got: takes<conv2d,tensor<float,-1,28,28,1>,tensor<float,3,3,1,8>,stride_t<2,2>,char5>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
placeholder<float, 3, 3, 1, 8> w("w");
auto y = conv2d(x, w, stride<2>, "same");
