// build error: \[one_hot\] expects integer indices, and got another dtype
// got: takes<one_hot,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = one_hot<10>(x);
