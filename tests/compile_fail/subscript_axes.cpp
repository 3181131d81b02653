// build error: \[subscript\] expects one subscript of each axis at most, and one ellipsis, and got
// more got: takes<subscript,tensor<float,-1,10>,int,int,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 10> x("x");
auto y = x(0, 0, 0);
