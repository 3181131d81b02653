// build error: \[mod\] expects integers, and got another dtype
// got: takes<mod,tensor<float,3>,float>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto z = x % 2.f;
