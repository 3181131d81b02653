// build error: \[dense\] dense<N> expects a typed tensor, and got one whose shape is known only
// got: takes<dense,any_tensor>
#include <deft/train/layers.hpp>
using namespace deft;
auto of(const any_tensor& x) { return dense<5>(x, "fc"); }
