// build error: \[gather\] gathers rows, along axis 0: transpose brings another axis there
// got: takes<gather,tensor<float,4,3>,tensor<int,2>,axis_t<1>>
#include <deft/expr.hpp>
using namespace deft;
auto of(const tensor<float, 4, 3>& x, const tensor<std::int32_t, 2>& i) {
  return gather(x, i, axis<1>);
}
