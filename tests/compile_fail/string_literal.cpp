// build error: \[add\] expects a literal that fits the dtype of the tensor next to it
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::string, 3> x("x");
auto z = x + 1;
