// build error: \[conv2d\] expects filters that fit into the images, and got larger ones
// got: takes<conv2d,tensor<float,-1,4,28,1>,tensor<float,5,5,1,32>,stride_t<2,2>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 4, 28, 1> x("x");
placeholder<float, 5, 5, 1, 32> w("w");
auto y = conv2d(x, w, stride<2>, padding::valid);
