// build error: \[sum\] expects axes, and got a.*sum\(x, axis<0>\), sum\(x, axis<0>, keepdims\)
// got: takes<sum,tensor<float,-1,3>,axis_t<1>,bool>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = sum(x, axis<1>, true);
