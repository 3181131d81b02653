// build error: \[run\] expects tensors, expressions, operations and feeds
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, 3> x("x");
session s;
void f() { s.run(x + 1, "x"); }
