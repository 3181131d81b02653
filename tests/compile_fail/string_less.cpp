// build error: \[less\] is not defined for strings: == and != compare them
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::string, 3> x("x");
auto z = x < x;
