// build error: \[mean\] expects a floating tensor, and got another dtype: use cast<float>
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::int32_t, 3> x("x");
auto y = mean(x);
