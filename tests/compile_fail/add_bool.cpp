// build error: \[add\] expects numbers, and got bool: use cast<float>\(x\)
// got: takes<add,tensor<bool,3>,tensor<bool,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<bool, 3> x("x");
auto z = x + x;
