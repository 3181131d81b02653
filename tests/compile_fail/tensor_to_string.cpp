// build error: \[to_string\] a tensor has no value while the graph is written: to_string\(s\.run\(x
// got: tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
variable<float, 3> v("v", zeros());
auto f() { return to_string(v); }
