// build error: \[one_hot\] expects a depth, and the dtype as a type: .* one_hot<10, double>\(x\)
// got: takes<one_hot,tensor<int,-1>,dtype>
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::int32_t, dyn> ids("ids");
auto y = one_hot<10>(ids, dtype::float64);
