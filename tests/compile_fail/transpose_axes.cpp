// build error: \[transpose\] expects a permutation of all axes, and got.*transpose\(x, perm<1, 0>\)
// got: takes<transpose,tensor<float,-1,3>,axis_t<1,0>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = transpose(x, axis<1, 0>);
