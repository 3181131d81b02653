// build error: \[activation\] expects a function, as in {\.activation = relu}, and got text
// got: takes<activation_function,char
#include <deft/train/layers.hpp>
using namespace deft;
auto of(const tensor<float, dyn, 4>& x) { return dense<5>(x, "fc", {.activation = "relu"}); }
