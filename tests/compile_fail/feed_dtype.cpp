// build error: \[feed\] the value has another dtype than the tensor
// got: takes<tensor<float,-1>,ndarray<double,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn> x("x");
auto f = x = ndarray<double, 3>{1, 2, 3};
