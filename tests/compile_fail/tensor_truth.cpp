// build error: a tensor has no truth value while the graph is written
// got: takes<bool,tensor<float>>
#include <deft/expr.hpp>
using namespace deft;
tensor<float> x = constant(1.f);
int f() { return x ? 1 : 0; }
