// build error: \[run\] expects tensors, expressions, operations and feeds, and got another type
// got: takes<session,placeholder<float,3>,rebound_tensor>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, 3> x("x");
tensor<float, 3> t;
session s;
void f() { s.run(x, t = x + 1); }
