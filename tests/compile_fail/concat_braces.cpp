// build error: \[concat\] expects the axis first, and then the tensors.*concat\(axis<0>, x, y\)
// got: takes<concat,axis_t<0>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = concat(axis<0>, {any_tensor(x), x});
