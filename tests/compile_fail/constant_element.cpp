// build error: \[constant\] element types are float, double, .*: use static_cast
// got: takes<constant,unsigned>
#include <deft/expr.hpp>
using namespace deft;
auto x = constant({1u, 2u});
