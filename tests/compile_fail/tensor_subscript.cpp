// build error: x\[i\]: a tensor's elements are not read while the graph is written: gather\(x, i\)
// got: takes<element_access,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = x[0];
