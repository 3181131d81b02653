// build error: \[expand_dims\] expects an axis, .*, or a number: expand_dims\(x, axis<1>\)
// got: takes<expand_dims,tensor<float,3>,int>
#include <deft/expr.hpp>
using namespace deft;
auto of(const tensor<float, 3>& x) { return expand_dims(x, 1); }
