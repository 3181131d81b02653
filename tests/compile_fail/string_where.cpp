// build error: \[where\] is not defined for strings: == and != compare them
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::string, 3> x("x");
placeholder<bool, 3> c("c");
auto z = where(c, x, x);
