// build error: \[device\] expects a name
// got: takes<device_spec,int>
#include <deft/expr.hpp>
using namespace deft;
auto gpu = on(device(0));
