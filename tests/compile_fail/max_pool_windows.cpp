// build error: \[max_pool\] expects a window, stride and.*max_pool\(x, window<3>, stride<2>,
// got: takes<max_pool,tensor<float,-1,28,28,1>,window_t<2,2>,window_t<2,2>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
auto y = max_pool(x, window<2>, window<2>);
