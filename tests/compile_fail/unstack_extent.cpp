// build error: \[unstack\] expects an axis in range whose extent is known
// got: takes<unstack,tensor<float,-1,10>,axis_t<0>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 10> x("x");
auto rows = unstack(x, axis<0>);
