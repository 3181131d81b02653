// build error: an expression has no truth value while the graph is written
// got: takes<bool,tensor<bool>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float> x("x");
int f() {
  if (x > 0) return 1;
  return 0;
}
