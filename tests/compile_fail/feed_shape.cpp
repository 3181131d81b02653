// build error: \[feed\] the value has another shape than the tensor
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 784> x("x");
auto f = x = ndarray<float, 3, 785>();
