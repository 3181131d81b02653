// build error: \[cast\] is not defined for strings
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::string, 3> x("x");
auto z = cast<float>(x);
