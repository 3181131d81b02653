// build error: \[feed\] a tensor expects an ndarray or a list of elements, and got a scalar
// got: takes<tensor<float,2>,float>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2> x("x");
auto f = x = 1.f;
