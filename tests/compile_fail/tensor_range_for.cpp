// build error: for \(auto e : x\): a tensor has no elements to read while the graph is written:
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
void f() {
  for (auto e : x) (void)e;
}
