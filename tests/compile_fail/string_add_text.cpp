// build error: \[add\] is not defined for strings: == and != compare them
// got: takes<add,tensor<basic_string<char
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::string, 3> x("x");
auto z = x + "a";
