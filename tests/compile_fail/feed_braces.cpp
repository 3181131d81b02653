// build error: the list has another number of elements than the tensor
// got: takes<tensor<float,2,2>,int,int,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 2> x("x");
auto f() { return x = {1, 2, 3}; }
