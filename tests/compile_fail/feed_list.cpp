// build error: \[feed\] a list of elements is fed to a tensor that is not a vector: use ndarray<T,
// got: takes<tensor<float,2,2>,vector<float,allocator<float>>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 2> x("x");
std::vector<float> v;
void f() { auto f = x = v; }
