// build error: \[matmul\] expects leading extents that are equal or 1, and got others: axis_t says
// got: takes<matmul,tensor<float,2,5,3,4>,tensor<float,3,1,4,6>,axis_t<-4>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 5, 3, 4> x("x");
placeholder<float, 3, 1, 4, 6> y("y");
auto z = matmul(x, y);
