// build error: \[piecewise_constant\] expects the training step first:
#include <deft/deft.hpp>
using namespace deft;
auto rate = piecewise_constant({100, 200}, {0.1, 0.01, 0.001});
