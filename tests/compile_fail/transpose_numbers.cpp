// build error: \[transpose\] expects a permutation of all axes, and got.*transpose\(x, perm<1, 0>\)
// got: takes<transpose,tensor<float,-1,3>,int,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = transpose(x, 1, 0);
