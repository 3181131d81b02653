// build error: \[gradients\] yields a tuple of one gradient for.*auto \[dw\] = gradients\(loss, w\)
// got: takes<gradients,tuple<tensor<float,3,2>>>
#include <deft/deft.hpp>
using namespace deft;
variable<float, 3, 2> w("w", zeros());
auto loss = sum(w);
auto step = 0.1f * gradients(loss, w);
