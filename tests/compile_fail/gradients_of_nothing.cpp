// build error: \[gradients\] expects a loss, and then the tensors or.*gradients\(loss, w, b\)
// got: takes<gradients,tensor<float,3,4>>
#include <deft/deft.hpp>
using namespace deft;
variable<float, 3, 4> w("w", zeros());
auto y = gradients(w);
