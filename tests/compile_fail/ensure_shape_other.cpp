// build error: \[ensure_shape\] the tensor cannot have these extents: its type says others
// got: takes<ensure_shape,tensor<float,-1,3>,shape_t<-1,4>>
#include <deft/expr.hpp>
using namespace deft;
auto of(const tensor<float, dyn, 3>& x) { return ensure_shape(x, shape<dyn, 4>); }
