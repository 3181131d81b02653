// build error: \[transpose\] expects a permutation of the tensor's axes
// got: takes<transpose,tensor<float,3,4>,perm_t<0,0>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
auto y = transpose(x, perm<0, 0>);
