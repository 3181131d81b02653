// build error: \[clip_by_global_norm\] expects gradients with their variables: o.apply_gradients
// got: takes<global_norm,tuple<tensor<float,3,2>>>
#include <deft/deft.hpp>
using namespace deft;
variable<float, 3, 2> w("w", zeros());
auto loss = sum(w);
auto clipped = clip_by_global_norm(gradients(loss, w), 5);
