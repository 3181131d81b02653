// build error: \[variable\] expects an initial value, as in variable<float, 10>
// got: takes<variable<float,3>,char2>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
variable<float, 3> w("w");
