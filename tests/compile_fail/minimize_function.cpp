// build error: \[minimize\] expects a global step, and got a function: call it, as in
#include <deft/deft.hpp>
using namespace deft;
variable<float> w("w", 1.f);
auto t = sgd(0.1).minimize(square(w), global_step);
