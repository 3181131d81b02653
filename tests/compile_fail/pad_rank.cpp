// build error: \[pad\] expects a number of elements before and after each axis, and got others
// got: takes<pad,tensor<float,-1,10>,before_t<1>,after_t<1>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 10> x("x");
auto y = pad(x, before<1>, after<1>);
