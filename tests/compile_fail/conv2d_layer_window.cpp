// build error: \[conv2d\] expects a window, as in conv2d<32>\(x, window<5>
// got: takes<conv2d,tensor<float,-1,28,28,1>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
auto y = conv2d<32>(x, "conv1");
