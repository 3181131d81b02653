// build error: \[slice\] expects the first index and the size.*slice\(x, at<0, 2>, shape<dyn, 3>\)
// got: takes<slice,tensor<float,-1,3>,int,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = slice(x, 0, 2);
