// build error: \[feed\] expects a value that knows its extents, and got a pointer: view\(p, rows
// got: takes<tensor<float,-1>,constfloat*>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn> x("x");
auto f(const float* p) { return x = p; }
