// build error: \[conv2d\] expects filters, or their number, a.* conv2d\(x, 32, {5, 5}, "conv1"\)
// got: takes<conv2d,tensor<float,-1,28,28,1>,int,int,char6>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
auto y = conv2d(x, 32, 5, "conv1");
