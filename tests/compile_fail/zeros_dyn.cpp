// build error: \[fill\] expects a shape without dyn, or its extents in braces
// got: takes<fill,shape_t<-1,3>>
#include <deft/expr.hpp>
using namespace deft;
auto x = zeros(shape<dyn, 3>);
