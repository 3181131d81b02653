// build error: void expression
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, 3> x("x");
tensor<float, 3> t;
session s;
void f() { s.run(x, t = x + 1); }
