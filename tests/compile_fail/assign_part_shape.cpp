// build error: \[assign\] expects a value that can be broadcast to the part of the variable, and
// got another got: takes<assign_slice,tensor<float,2,3>,tensor<float,4>>
#include <deft/expr.hpp>
using namespace deft;
variable<float, 5, 3> v("v", zeros());
placeholder<float, 4> x("x");
auto y = v(range<0, 2>).assign(x);
