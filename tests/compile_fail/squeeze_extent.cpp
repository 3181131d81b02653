// build error: \[squeeze\] expects axes of extent 1 within the tensor.s rank
// got: takes<squeeze,tensor<float,2,1>,axis_t<0>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 1> x("x");
auto y = squeeze(x, axis<0>);
