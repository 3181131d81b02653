// build error: \[all_reduce\] expects tensors of numbers of one dtype and shape, for a mean
// got: takes<all_reduce,tensor<float,3>,tensor<float,4>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<float, 4> y("y");
auto z = all_reduce(x, y);
