// build error: \[dropout\] expects a rate, and whether it trains among the.*dropout\(x, 0.5\)
// got: takes<dropout,tensor<float,-1,3>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = dropout(x);
