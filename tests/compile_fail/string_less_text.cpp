// build error: \[less\] is not defined for strings: == and != compare them
// got: takes<less,char2,tensor<basic_string<char
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::string, 3> x("x");
auto z = "a" < x;
