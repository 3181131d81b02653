// build error: \[total_loss\] expects float or double
#include <deft/train/losses.hpp>
using namespace deft;
auto loss = total_loss<std::int32_t>();
