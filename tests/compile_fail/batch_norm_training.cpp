// build error: \[batch_norm\] expects a name, .* batch_norm\(x, "norm", {.training = training}\)
// got: takes<batch_norm,tensor<float,-1,3>,char3,bool>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = batch_norm(x, "bn", true);
