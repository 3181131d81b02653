// build error: x\[i\]: subscripts are in parentheses: x\(i\), x\(range\(2, 5\), all\);
// got: takes<element_access,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = x[0];
