// build error: \[add\] x \+= y: a tensor names a value, which does not change: name another, as in
// got: takes<compound_assignment,tensor<float>,float>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
variable<float> w("w", 0);
void f() { w += 1.f; }
