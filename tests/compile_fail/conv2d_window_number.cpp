// build error: \[conv2d\] expects a window, and got a number: conv2d<32>\(x, window<5>
// got: takes<conv2d,tensor<float,-1,8,8,1>,int>
#include <deft/train/layers.hpp>
using namespace deft;
auto of(const tensor<float, dyn, 8, 8, 1>& x) { return conv2d<16>(x, 3, "c"); }
