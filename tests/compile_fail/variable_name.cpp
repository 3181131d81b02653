// build error: \[variable\] expects a name before the initial value, as in variable<float> b
// got: takes<variable<float,3>,
#include <deft/expr.hpp>
using namespace deft;
variable<float, 3> w(zeros());
