// build error: \[gru\] expects units and a name: gru<16>\(x, "gru"\), or gru\(x, 16, "gru"\)
// got: takes<gru,tensor<float,-1,20,8>,int>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 20, 8> x("x");
auto y = gru(x, 16).outputs;
