// build error: \[variable\] expects an initial value of its own shape, and got another
// got: takes<variable<float,2,2>,vector<float
#include <deft/expr.hpp>
using namespace deft;
const std::vector<float> elements{1, 2, 3, 4};
variable<float, 2, 2> w("w", elements);
