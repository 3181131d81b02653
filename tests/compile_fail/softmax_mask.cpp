// build error: \[where\] expects a bool condition, and got another dtype: compare with 0
// got: takes<where,tensor<float,2,3>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 3> x("x");
auto y = softmax(x, axis<1>, x);
