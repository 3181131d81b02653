// build error: \[where\] expects a bool condition
// got: takes<where,tensor<float,3>,tensor<float,3>,float>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto z = where(x, x, 0.f);
