// build error: \[sum\] expects axes within the tensor's rank, each once
// got: takes<sum,tensor<float,3,3>,axis_t<1,-1>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 3> x("x");
auto y = sum(x, axis<1, -1>);
