// build error: \[log_softmax\] expects an axis, and got a number: log_softmax\(x, axis<1>\)
// got: takes<log_softmax,tensor<float,-1,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = log_softmax(x, 1);
