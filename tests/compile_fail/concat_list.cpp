// build error: \[concat\] expects the axis first, and then the tensors.*concat\(axis<0>, x, y\)
// got: takes<concat,axis_t<0>>
#include <deft/expr.hpp>
using namespace deft;
auto of(const tensor<float, 3>& x) { return concat({x, x}, axis<0>); }
