// build error: \[gather\] expects indices of int32 or int64, and got another dtype
// got: takes<gather,tensor<float,3,4>,tensor<float,3,4>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
auto y = gather(x, x);
