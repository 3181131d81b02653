// build error: \[feed\] expects elements in memory, and std::vector<bool> has bits: use
// got: takes<tensor<bool,3>,vector<bool,allocator<bool>>>
#include <deft/expr.hpp>
#include <vector>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<bool, 3> b("b");
void f() {
  std::vector<bool> v;
  auto g = b = v;
}
