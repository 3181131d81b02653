// build error: \[dense\] expects a name, as in dense<10>\(x,
// got: takes<dense,tensor<float,-1,4>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 4> x("x");
auto y = dense<10>(x);
