// build error: \[sum\] expects a tensor of numbers, and got bool or strings
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::string, 3> x("x");
auto y = sum(x);
