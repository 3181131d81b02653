// build error: \[compute_in\] expects bfloat16 or float16, or float, which ends such a scope
#include <deft/expr.hpp>
using namespace deft;
void f() { auto half = compute_in<double>(); }
