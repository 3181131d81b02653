// build error: \[variable\] expects a name and an initial value, as in variable<float> b
// got: takes<variable<float,3>,missing>
#include <deft/expr.hpp>
using namespace deft;
variable<float, 3> w;
