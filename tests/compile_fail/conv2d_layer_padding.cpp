// build error: \[conv2d\] expects filters, or.*; a stride follows the options
// got: takes<conv2d,tensor<float,-1,28,28,1>,window_t<3,3>,char2,padding_t<padding_mode::same>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
auto y = conv2d<8>(x, window<3>, "c", padding::same);
