// build error: \[variable\] expects an initial value after its extents, as in
// got: takes<variable<float,-1>,char2,dims>
#include <deft/expr.hpp>
using namespace deft;
variable<float, dyn> w("w", {3});
