// build error: \[rms_norm\] expects a floating tensor, and a scale as long as its last axis
// got: takes<rms_norm,tensor<float,2,3>,tensor<float,4>>
#include <deft/deft.hpp>
using namespace deft;
auto of(const tensor<float, 2, 3>& x, const tensor<float, 4>& scale) { return rms_norm(x, scale); }
