// build error: \[random\] random tensors are float or double, and the tensor that they are to
// got: takes<random_normal,tensor<int,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::int32_t, 3> i("i");
auto x = random_normal_like(i);
