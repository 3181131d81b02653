// build error: \[feed\] the value has another dtype than the tensor: use static_cast
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::string> x("x");
auto f = x = 1;
