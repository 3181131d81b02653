// build error: \[log_softmax\] expects a floating tensor, and got another dtype
// got: takes<log_softmax,tensor<int,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::int32_t, 3> x("x");
auto y = log_softmax(x);
