// build error: \[add\] x \+= y: a tensor names a value, which does not change: name another, as in
// got: takes<compound_assignment,tensor<float,3>,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
void f() {
  tensor<float, 3> t = x;
  t += x;
}
