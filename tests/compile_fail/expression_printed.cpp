// build error: \[<<\] a tensor has no value while the graph is written: print s\.run\(x\), and
// got: takes<basic_ostream<char
#include <deft/expr.hpp>
#include <iostream>
using namespace deft;
placeholder<float, 3> x("x");
void f() { std::cout << x + x << "\n"; }
