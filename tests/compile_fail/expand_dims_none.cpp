// build error: \[expand_dims\] expects an axis, and got none, or a.*expand_dims\(x, axis<1>\)
// got: takes<expand_dims,tensor<float,-1,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = expand_dims(x);
