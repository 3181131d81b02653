// build error: \[reshape\] expects a shape, and got none, or something.*reshape\(x, shape<dyn, 3>\)
// got: takes<reshape,tensor<float,-1,3>,int,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = reshape(x, -1, 3);
