// build error: \[matmul\] is not defined for strings: == and != compare them
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::string, 3, 3> x("x");
auto y = matmul(x, x);
