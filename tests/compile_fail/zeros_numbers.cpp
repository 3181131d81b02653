// build error: \[zeros\] expects a shape, and got numbers or a dtype: zeros\(shape<2, 3>\)
// got: takes<zeros,float,int,int>
#include <deft/expr.hpp>
using namespace deft;
auto y = zeros(2, 3);
