// build error: \[variable\] expects an initial value, and got a function: call it, as in zeros\(\)
// got: takes<variable<float,3>,char2,
#include <deft/expr.hpp>
using namespace deft;
variable<float, 3> w("w", zeros);
