// build error: \[feed\] a list of elements is fed to a tensor that is no vector
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 2> x("x");
std::vector<float> v;
void f() { auto f = x = v; }
