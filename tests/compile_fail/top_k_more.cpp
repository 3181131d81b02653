// build error: \[top_k\] expects as many elements along the last axis, and got fewer
// got: takes<top_k,tensor<float,2,3>,shape_t<4>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 3> x("x");
auto y = top_k<4>(x);
