// build error: \[feed\] the list has another number of elements than the tensor
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 2> x("x");
auto f() { return x = {1, 2, 3}; }
