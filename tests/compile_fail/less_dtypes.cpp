// build error: \[less\] expects operands of one dtype, and got several: use cast<T>\(x\)
// got: takes<less,tensor<float,3>,tensor<long,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<std::int64_t, 3> y("y");
auto z = where(x < y, x, 0) + 1;
