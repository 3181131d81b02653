// build error: \[pad\] expects the numbers of elements before.*pad\(x, before<1, 0>, after<1, 2>\)
// got: takes<pad,tensor<float,-1,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = pad(x, 1);
