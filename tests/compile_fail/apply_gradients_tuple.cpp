// build error: \[apply_gradients\] expects gradients with their variables, as of
// got: takes<optimizer,tuple<tensor<float,3,2>>>
#include <deft/deft.hpp>
using namespace deft;
variable<float, 3, 2> w("w", zeros());
auto loss = sum(w);
auto train = sgd(0.1).apply_gradients(gradients(loss, w));
