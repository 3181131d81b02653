// build error: \[sum\] expects a tensor of numbers, and got bool
#include <deft/expr.hpp>
using namespace deft;
placeholder<bool, 3> x("x");
auto y = sum(x);
