// build error: \[variable\] expects a host value to feed, and got a variable: use assign
#include <deft/expr.hpp>
using namespace deft;
variable<float> v("v", 0.f), w("w", 0.f);
void f() { v = w; }
