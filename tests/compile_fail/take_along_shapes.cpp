// build error: \[take_along\] expects an axis of both tensors, and extents that can be broadcast
// got: takes<take_along,tensor<float,2,3>,tensor<int,3,3>,axis_t<1>>
#include <deft/expr.hpp>
using namespace deft;
auto of(const tensor<float, 2, 3>& x, const tensor<std::int32_t, 3, 3>& i) {
  return take_along(x, i, axis<1>);
}
