// build error: \[placeholder\] expects a host value to feed, and got an expression
// got: takes<placeholder<float>,tensor<float>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float> x("x"), y("y");
void f() { x = y * 2; }
