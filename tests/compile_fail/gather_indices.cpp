// build error: \[gather\] expects indices of int32 or int64, and got another dtype
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
auto y = gather(x, x);
