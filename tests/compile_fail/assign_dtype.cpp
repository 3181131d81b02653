// build error: \[assign\] expects a value of the variable's dtype, and got another
// got: takes<assign,variable<float,2>,tensor<int,2>>
#include <deft/expr.hpp>
using namespace deft;
variable<float, 2> v("v", zeros());
auto a = v.assign(constant({1, 2}));
