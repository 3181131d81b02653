// build error: \[isnan\] expects float or double, and got another dtype
// got: takes<isnan,tensor<int,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::int32_t, 3> x("x");
auto y = isnan(x);
