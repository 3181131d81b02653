// build error: an expression has no value while the graph is written: s.run\(x\) yields it
// several errors
#include <deft/expr.hpp>
using namespace deft;
tensor<float, dyn, 3> of(const tensor<float, dyn, 3>& a, bool c) {
  tensor<float, dyn, 3> b = c ? a + 1 : a - 1;
  return b;
}
