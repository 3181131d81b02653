// build error: \[dense\] expects a tensor of float or double of \(n,in\), and got another
// got: takes<dense,tensor<int,-1,4>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<std::int32_t, dyn, 4> x("x");
auto y = dense<10>(x, "fc");
