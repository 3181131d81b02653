// build error: a tensor has no value while the graph is written: s\.run\(x\) yields it; functions
// got: takes<double,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = tan(x);
