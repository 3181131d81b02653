// build error: \[max_pool\] expects windows that fit into the images, and got others
// got: takes<max_pool,tensor<float,-1,4,1,3>,window_t<2,2>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 4, 1, 3> x("x");
auto y = max_pool(x, window<2>);
