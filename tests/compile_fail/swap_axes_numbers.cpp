// build error: \[swap_axes\] expects axes, and got none, or numbers: swap_axes\(x, axis<0, 1>\)
// got: takes<swap_axes,tensor<float,2,3>,int,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 3> x("x");
auto y = swap_axes(x, 0, 1);
