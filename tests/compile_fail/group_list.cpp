// build error: \[group\] expects operations and tensors without braces, as in group\(a, b\)
#include <deft/expr.hpp>
using namespace deft;
variable<float> v("v", 0);
auto y = group({v.assign_add(1), v});
