// build error: \[avg_pool\] expects a window, stride and padding as types, in that order
// got: takes<avg_pool,tensor<float,-1,28,28,1>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
auto y = avg_pool(x);
