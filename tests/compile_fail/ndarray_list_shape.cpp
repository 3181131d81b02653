// build error: \[ndarray\] the list has another shape than the ndarray
// got: takes<ndarray<float,2,2>,shape_t<2,3>>
#include <deft/expr.hpp>
using namespace deft;
ndarray<float, 2, 2> v{{1, 2, 3}, {4, 5, 6}};
