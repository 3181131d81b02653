// build error: \[assign\] expects a value of the variable's shape, and got another
// got: takes<assign,variable<float,2>,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
variable<float, 2> v("v", zeros());
auto a = v.assign(constant({1.f, 2.f, 3.f}));
