// build error: \[mean\] expects a floating tensor, and got another dtype: use cast<float>
// got: takes<mean,tensor<int,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::int32_t, 3> x("x");
auto y = mean(x);
