// build error: \[constant\] expects float, double, int32, int64, uint8 or bool, and got another
// got: takes<constant,unsigned>
#include <deft/expr.hpp>
using namespace deft;
auto x = constant({1u, 2u});
