// build error: \[stack\] expects the axis first, and then the tensors.*stack\(axis<0>, x, y\)
// got: takes<stack,tensor<float,3>,tensor<float,3>,axis_t<0>>
#include <deft/expr.hpp>
using namespace deft;
auto of(const tensor<float, 3>& x) { return stack(x, x, axis<0>); }
