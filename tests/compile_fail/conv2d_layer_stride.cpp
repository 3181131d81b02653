// build error: \[conv2d\] expects filters, or.*; a stride follows the options: conv2d<32>\(x,
// got: takes<conv2d,tensor<float,-1,28,28,1>,window_t<3,3>,stride_t<2,2>,char2>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
auto y = conv2d<8>(x, window<3>, stride<2>, "c");
