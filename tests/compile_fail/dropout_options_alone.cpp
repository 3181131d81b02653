// build error: \[dropout\] expects a rate, and.* dropout\(x, 0.5, {.training = training}\)
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = dropout(x, {.training = true});
