// build error: \[conv2d\] expects images \(batch, height, width, channels\) and filters
// got: takes<conv2d,tensor<float,-1,784>,tensor<float,5,5,1,32>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 784> x("x");
placeholder<float, 5, 5, 1, 32> w("w");
auto y = conv2d(x, w);
