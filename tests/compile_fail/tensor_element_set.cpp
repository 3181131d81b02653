// build error: x\(i\): a tensor's elements are neither read nor set while the graph is written:
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
void f() { x(0) = 5; }
