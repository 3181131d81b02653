// build error: \[random\] a random tensor's shape has no dyn: random_normal_like\(x\) has the
// extents of x got: takes<random_normal,shape_t<-1,16>>
#include <deft/expr.hpp>
using namespace deft;
auto x = random_normal(shape<dyn, 16>, 0, 1);
