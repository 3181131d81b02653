// build error: \[control_dependencies\] expects operations and tensors without braces
#include <deft/expr.hpp>
using namespace deft;
variable<float> v("v", 0);
auto y = control_dependencies({v.assign_add(1), v});
