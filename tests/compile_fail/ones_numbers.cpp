// build error: \[ones\] expects a shape, and got numbers or a dtype: ones\(shape<2, 3>\)
// got: takes<ones,float,int,int>
#include <deft/expr.hpp>
using namespace deft;
auto y = ones(2, 3);
