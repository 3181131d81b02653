// build error: \[dense\] expects units and a name, or.*dense<10>\(x, "fc"\), dense\(x, 10, "fc"\)
// got: takes<dense,tensor<float,-1,3>,int>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = dense(x, 10);
