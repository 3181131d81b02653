// build error: an expression has no value while the graph is written: s\.run\(x\) yields it;
// got: takes<double,tensor<bool,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
bool e = x == x;
