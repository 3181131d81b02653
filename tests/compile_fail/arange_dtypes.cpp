// build error: \[arange\] expects scalars of one dtype, and got several: use cast
// got: takes<arange,tensor<int>,tensor<float>,long
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::int32_t> a("a");
placeholder<float> b("b");
auto x = arange(a, b);
