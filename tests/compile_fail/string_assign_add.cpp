// build error: \[assign_add\] expects a variable of numbers, and got bool or strings
#include <deft/expr.hpp>
using namespace deft;
variable<std::string> v("v", "a");
auto f = v.assign_add(constant("b"));
