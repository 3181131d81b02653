// build error: an expression has no truth value while the graph is written: use where\(c, a, b\)
// several errors
#include <deft/expr.hpp>
using namespace deft;
tensor<float> of(const tensor<float>& a) {
  tensor<float> b = a > 0 ? a : -a;
  return b;
}
