// build error: \[assign\] expects a value of the variable.s dtype, and got another
// got: takes<assign_add_slice,tensor<float,3>,tensor<double,3>>
#include <deft/expr.hpp>
using namespace deft;
variable<float, 5, 3> v("v", zeros());
placeholder<double, 3> x("x");
auto y = v(0).assign_add(x);
