// build error: \[stack\] expects the axis first, and then the tensors.*stack\(axis<0>, x, y\)
// got: takes<stack,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = stack({x, x}, 0);
