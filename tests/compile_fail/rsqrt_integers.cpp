// build error: \[rsqrt\] expects float or double, and got another dtype: use cast<float>\(x\)
// got: takes<rsqrt,tensor<int,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::int32_t, 3> x("x");
auto y = rsqrt(x);
