// build error: \[variable\] expects a host value to feed, and got an expression: use assign
// got: takes<variable<float>,tensor<float>>
#include <deft/expr.hpp>
using namespace deft;
variable<float> v("v", 0.f);
void f() { v = v * 2; }
