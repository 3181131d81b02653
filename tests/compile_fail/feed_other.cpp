// build error: \[feed\] expects a number, an ndarray, an any_array, or a vector, array or span of
// got: takes<tensor<float,2,2>,vector<vector<float
#include <deft/expr.hpp>
#include <vector>
using namespace deft;
placeholder<float, 2, 2> x("x");
auto f = x = std::vector<std::vector<float>>();
