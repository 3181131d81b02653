// build error: \[argmax\] expects one axis, and neither a number nor keepdims: argmax\(x, axis<1>\)
// got: takes<argmax,tensor<float,-1,3>,axis_t<1>,keepdims_t>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = argmax(x, axis<1>, keepdims);
