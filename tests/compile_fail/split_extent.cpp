// build error: \[split\] expects an axis in range whose extent is known and a multiple of the
// got: takes<split,tensor<float,-1,10>,axis_t<1>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 10> x("x");
auto parts = split<3>(x, axis<1>);
