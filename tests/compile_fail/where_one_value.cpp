// build error: \[where\] expects a tensor of bool and two values .*, as in where\(c, x, 0\)
// got: takes<where,tensor<bool,3>,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
auto of(const tensor<float, 3>& x) { return where(x > 0, x); }
