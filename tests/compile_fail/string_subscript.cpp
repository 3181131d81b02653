// build error: \[subscript\] expects elements other than strings
// got: takes<subscript,
#include <deft/expr.hpp>
using namespace deft;
variable<std::string, 2> v("v", {"a", "b"});
auto y = v(0);
