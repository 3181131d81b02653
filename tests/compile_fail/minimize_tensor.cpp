// build error: \[minimize\] expects a scalar loss, and got a tensor: use mean\(loss\), or
// got: takes<optimizer,tensor<float,3>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, 3> x("x");
variable<float, 3> w("w", zeros());
auto t = sgd(0.1).minimize(square(w));
