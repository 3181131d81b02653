// build error: \[feed\] expects numbers, and got text: std::stof\(s\) reads a number of it
// got: takes<tensor<float,3>,char6>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto f = x = "1 2 3";
