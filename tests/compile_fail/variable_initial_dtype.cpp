// build error: \[variable\] expects an initial value of its own dtype, and got another
// got: takes<variable<float,2>,tensor<int,2>>
#include <deft/expr.hpp>
using namespace deft;
variable<float, 2> v("v", constant({1, 2}));
