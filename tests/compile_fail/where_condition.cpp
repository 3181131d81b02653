// build error: \[where\] expects a bool condition
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto z = where(x, x, 0.f);
