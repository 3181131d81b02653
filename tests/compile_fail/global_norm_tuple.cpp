// build error: \[global_norm\] expects gradients with their variables, as of
// got: takes<global_norm,tuple<tensor<float,3,2>>>
#include <deft/deft.hpp>
using namespace deft;
variable<float, 3, 2> w("w", zeros());
auto loss = sum(w);
auto norm = global_norm(gradients(loss, w));
