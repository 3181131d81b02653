// build error: \[tril\] expects two axes or more, and got fewer
// got: takes<tril,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = tril(x);
