// build error: \[placeholder\] expects a host value to feed, and got {}
#include <deft/expr.hpp>
using namespace deft;
placeholder<float> x("x");
void f() { x = {}; }
