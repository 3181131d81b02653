// build error: \[arange\] expects scalars of one dtype, and got several: use cast
// got: takes<arange,int,double,long
#include <deft/expr.hpp>
using namespace deft;
auto x = arange<std::int32_t>(0, 5.5);
