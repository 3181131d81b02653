// build error: \[ndarray\] the rows of the list have different lengths
#include <deft/expr.hpp>
using namespace deft;
ndarray<float, 2, 2> v{{1, 2}, {3}};
