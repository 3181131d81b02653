// build error: \[device\] expects a name, as in device\("/gpu:0"\), and got a number
// got: takes<device_spec,int>
#include <deft/expr.hpp>
using namespace deft;
auto gpu = on(device(0));
