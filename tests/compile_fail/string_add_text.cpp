// build error: \[add\] is not defined for strings: == and != compare them
// got: takes<add,tensor<string,3>,char2>
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::string, 3> x("x");
auto z = x + "a";
