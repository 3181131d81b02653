// build error: \[clip_by_norm\] expects float or double, and got another dtype: use cast<float>
// got: takes<clip_by_norm,tensor<int,3>>
#include <deft/train/clip.hpp>
using namespace deft;
auto of(const tensor<std::int32_t, 3>& x) { return clip_by_norm(x, 1); }
