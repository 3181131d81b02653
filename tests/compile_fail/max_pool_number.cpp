// build error: \[max_pool\] expects a window, stride and padding as types, in that order
// got: takes<max_pool,tensor<float,-1,28,28,1>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
auto y = max_pool(x, 2);
