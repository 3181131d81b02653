// build error: \[variable\] expects its extents where some of them are dyn
// got: takes<variable<float,-1,3>,initializer>
#include <deft/expr.hpp>
using namespace deft;
variable<float, dyn, 3> a("a", zeros());
