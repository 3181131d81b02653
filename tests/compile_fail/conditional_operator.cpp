// build error: a tensor has no truth value while the graph is written: use where\(c, a, b\), or
// got: takes<bool,tensor<bool>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<bool> c("c");
auto y = c ? x : x;
