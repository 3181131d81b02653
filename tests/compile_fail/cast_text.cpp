// build error: \[cast\] expects an element type,.*cast<double>\(x\), or cast\(x, dtype::float64\)
// got: takes<cast,tensor<float,-1,3>,char8>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = cast(x, "float64");
