// build error: \[avg_pool\] expects a window, stride and padding as types, in that order
// got: takes<avg_pool,tensor<float,-1,28,28,1>,window_t<2,2>,padding_t<
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
auto y = avg_pool(x, window<2>, padding::same, stride<2>);
