// build error: \[reduce_any\] expects bool, and got another dtype: compare with 0
// got: takes<reduce_any,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = reduce_any(x);
