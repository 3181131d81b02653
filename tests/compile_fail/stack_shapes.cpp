// build error: \[stack\] expects an axis of the result, and tensors of one dtype and shape
// got: takes<stack,axis_t<0>,tensor<float,3>,tensor<float,4>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<float, 4> y("y");
auto z = stack(axis<0>, x, y);
