// builds
#include <deft/expr.hpp>
#include <string>
#include <vector>
using namespace deft;
placeholder<std::string, 2> x("x");
placeholder<std::string, 2, 2> m("m");
placeholder<std::string> s("s");
tensor<bool, 2> equal = x == constant({"a", "b"});
auto one = s = "text";
auto list = x = {"a", "b"};
auto rows = m = {{"a", "b"}, {"c", "d"}};
auto many = x = std::vector<std::string>{"a", "b"};
variable<std::string, 2> v("v", {"a", "b"});
auto assigned = v.assign({"c", "d"});
