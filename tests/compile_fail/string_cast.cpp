// build error: \[cast\] is not defined for strings
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto z = cast<std::string>(x);
