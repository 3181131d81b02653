// build error: \[gather\] expects an axis of the tensor, and a result of rank 8 at most
// got: takes<gather,tensor<float,4,3>,tensor<int,2>,axis_t<2>>
#include <deft/expr.hpp>
using namespace deft;
auto of(const tensor<float, 4, 3>& x, const tensor<std::int32_t, 2>& i) {
  return gather(x, i, axis<2>);
}
