// build error: \[concat\] expects the axis first, and then the tensors.*concat\(axis<0>, x, y\)
// got: takes<concat,int,tensor<float,-1,3>,tensor<float,-1,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = concat(0, x, x);
