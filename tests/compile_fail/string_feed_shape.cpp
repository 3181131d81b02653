// build error: \[feed\] a tensor expects an ndarray or a list of elements, and got a scalar
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::string, 3> x("x");
auto f = x = "text";
