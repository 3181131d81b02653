// build error: \[conv2d\] expects operands of one dtype, and got two: use cast<T>\(x\)
// got: takes<conv2d,tensor<float,-1,28,28,1>,tensor<double,5,5,1,32>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
placeholder<double, 5, 5, 1, 32> w("w");
auto y = conv2d(x, w);
