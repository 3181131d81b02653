// build error: \[concat\] expects an axis in range, and extents that agree on the other axes
// got: takes<concat,axis_t<0>,tensor<float,3,4>,tensor<float,3,5>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<float, 3, 5> y("y");
auto z = concat(axis<0>, x, y);
