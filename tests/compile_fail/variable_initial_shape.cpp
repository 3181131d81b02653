// build error: \[variable\] expects an initial value of its own shape, and got another
// got: takes<variable<float,2>,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
variable<float, 2> v("v", constant({1.f, 2.f, 3.f}));
