// build error: \[conv2d\] expects filters, or their number,.* conv2d<32>\(x, window<5>, "conv1"\)
// got: takes<conv2d,tensor<float,-1,28,28,1>,window_t<5,5>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
auto y = conv2d<32>(x, window<5>);
