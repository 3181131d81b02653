// build error: \[to_string\] a tensor has no value while the graph is written: to_string\(s\.run\(x
// got: any_tensor>
#include <deft/expr.hpp>
using namespace deft;
auto f(const any_tensor& x) { return to_string(x); }
