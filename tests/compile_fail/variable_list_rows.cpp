// build error: the rows of the list have different lengths
// got: takes<tensor<float,2,2>
#include <deft/expr.hpp>
using namespace deft;
variable<float, 2, 2> w("w", {{1, 2}, {3}});
