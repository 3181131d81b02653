// build error: \[reshape\] expects a shape, .*: reshape\(x, shape<dyn, 3>\)
// got: takes<reshape,tensor<float,-1,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = reshape<dyn, 3>(x);
