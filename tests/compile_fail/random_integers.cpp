// build error: \[random\] random tensors are float or double
// got: takes<random_normal,int>
#include <deft/expr.hpp>
using namespace deft;
auto x = random_normal<std::int32_t>(shape<3>);
