// build error: \[slice\] expects a first index and a size of each axis within the tensor's extents
// got: takes<slice,tensor<float,-1,10>,at_t<0,8>,shape_t<-1,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 10> x("x");
auto y = slice(x, at<0, 8>, shape<dyn, 3>);
