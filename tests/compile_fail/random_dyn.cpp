// build error: \[random\] a random tensor.s shape has no dyn
// got: takes<random_uniform,shape_t<-1,3>>
#include <deft/expr.hpp>
using namespace deft;
auto x = random_uniform(shape<dyn, 3>);
