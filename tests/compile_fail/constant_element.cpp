// build error: \[constant\] element types are float, double, .*: use static_cast
// got: takes<constant,longdouble>
#include <deft/expr.hpp>
using namespace deft;
auto x = constant({1.0L, 2.0L});
