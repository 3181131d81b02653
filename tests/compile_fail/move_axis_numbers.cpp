// build error: \[move_axis\] expects axes and their places, and got numbers, or less
// got: takes<move_axis,tensor<float,2,3>,int,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 3> x("x");
auto y = move_axis(x, 0, 1);
