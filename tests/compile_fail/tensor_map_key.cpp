// build error: an expression has no value while the graph is written: s\.run\(x\) yields it;
// got: takes<double,tensor<bool,3>>
#include <deft/expr.hpp>
#include <map>
using namespace deft;
placeholder<float, 3> x("x");
std::map<tensor<float, 3>, int> m;
void f() { m[x] = 1; }
