// build error: \[argsort\] expects an axis within the tensor's rank
// got: takes<argsort,tensor<float,2,3>,axis_t<2>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 3> x("x");
auto y = argsort(x, axis<2>);
