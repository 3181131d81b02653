// build error: \[gradients\] expects a loss, .*: gradients\(loss, w, b\)
// got: takes<gradients,tensor<float>,tuple<variable<float,3,4>>>
#include <deft/deft.hpp>
using namespace deft;
variable<float, 3, 4> w("w", zeros());
auto y = gradients(sum(w), std::tuple{w});
