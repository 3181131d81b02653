// build error: \[eye\] expects the shape of a matrix without dyn
// got: takes<eye,float,shape_t<-1,3>>
#include <deft/expr.hpp>
using namespace deft;
auto y = eye(shape<dyn, 3>);
