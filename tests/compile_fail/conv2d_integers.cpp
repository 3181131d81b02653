// build error: \[conv2d\] expects float or double, and got another dtype
// got: takes<conv2d,tensor<unsignedchar,-1,28,28,1>,tensor<float,5,5,1,32>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::uint8_t, dyn, 28, 28, 1> x("x");
placeholder<float, 5, 5, 1, 32> w("w");
auto y = conv2d(x, w);
