// build error: \[truncated_normal\] expects a standard deviation alone, as its mean is 0, and got
// got: takes<initializer,int,double>
#include <deft/expr.hpp>
using namespace deft;
variable<float, 3> v("v", truncated_normal(0, 0.1));
