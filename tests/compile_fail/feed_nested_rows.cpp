// build error: the rows of the list have different lengths
// got: takes<tensor<float,-1,2>,constfloat(&)2,constfloat(&)1>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 2> x("x");
auto f() { return x = {{1, 2}, {3}}; }
