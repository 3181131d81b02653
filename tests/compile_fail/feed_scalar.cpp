// build error: \[feed\] a scalar is fed to a tensor that is none
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2> x("x");
auto f = x = 1.f;
