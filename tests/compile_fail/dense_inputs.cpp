// build error: \[dense\] expects units and a name, .*; the number of inputs is the last extent of x
// got: takes<dense,tensor<float,-1,3>,int,int,char3>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = dense(x, 3, 10, "fc");
