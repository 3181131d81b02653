// build error: \[linspace\] expects a floating dtype, and got another
// got: takes<linspace,int>
#include <deft/expr.hpp>
using namespace deft;
auto y = linspace<std::int32_t>(0, 1, 5);
