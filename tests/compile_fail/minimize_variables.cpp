// build error: \[minimize\] expects several variables in braces: minimize\(loss, {w, b}\)
// got: takes<optimizer,tensor<float,3,2>,tensor<float,3,2>>
#include <deft/deft.hpp>
using namespace deft;
variable<float, 3, 2> w("w", zeros());
auto loss = sum(w);
auto train = sgd(0.1).minimize(loss, w, w);
