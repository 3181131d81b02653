// build error: \[lstm\] expects units and a name: lstm<16>\(x, "lstm"\), or lstm\(x, 16, "lstm"\)
// got: takes<lstm,tensor<float,-1,20,8>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 20, 8> x("x");
auto [all, last] = lstm<16>(x);
