// build error: the rows of the list have different lengths
// got: takes<tensor<float,2,2>,constfloat(&)2,constfloat(&)1>
#include <deft/expr.hpp>
using namespace deft;
variable<float, 2, 2> w("w", zeros());
auto f() { return w.assign({{1, 2}, {3}}); }
