// build error: \[feed\] the value has another shape than the tensor
// got: takes<tensor<float,-1,784>,ndarray<float,3,785>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 784> x("x");
auto f = x = ndarray<float, 3, 785>();
