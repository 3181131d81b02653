// build error: \[pad\] expects the numbers of elements before and.* pad\(x, {1, 0}, {1, 2}\)
// got: takes<pad,tensor<float,-1,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = pad(x, {{1, 1}, {0, 2}});
