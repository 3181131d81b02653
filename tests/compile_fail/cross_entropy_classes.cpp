// build error: \[softmax_cross_entropy\] expects classes, int32 or int64, of one axis less than the
// logits got: takes<softmax_cross_entropy,tensor<float,-1,3>,tensor<int,-1,3>>
#include <deft/expr.hpp>
using namespace deft;
auto loss(const tensor<float, dyn, 3>& logits, const tensor<std::int32_t, dyn, 3>& label) {
  return softmax_cross_entropy(logits, label);
}
