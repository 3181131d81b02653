// build error: the list has another number of elements than the tensor
// got: takes<tensor<float,3>,int,int>
#include <deft/expr.hpp>
using namespace deft;
variable<float, 3> w("w", {1, 2});
