// build error: \[zeros\] expects a shape, and got numbers or a.* zeros<double>\(shape<2, 3>\)
// got: takes<zeros,float,shape_t<2,3>,dtype>
#include <deft/expr.hpp>
using namespace deft;
auto y = zeros(shape<2, 3>, dtype::float64);
