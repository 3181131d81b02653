// build error: the list has another shape than the tensor
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 2> x("x");
auto f() { return x = {{1, 2, 3}, {4, 5, 6}}; }
