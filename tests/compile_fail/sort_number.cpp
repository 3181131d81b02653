// build error: \[sort\] expects an axis, and got a number: sort\(x, axis<1>\)
// got: takes<sort,tensor<float,2,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 3> x("x");
auto y = sort(x, 1);
