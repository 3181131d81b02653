// build error: \[lstm\] expects a sequence of \(batch,steps,inputs\) whose number of steps and
// inputs is known
#include <deft/train/layers.hpp>
using namespace deft;
auto of(const tensor<float, 8, dyn, 3>& x) { return lstm<16>(x, "lstm"); }
