// build error: \[random\] a random tensor expects a shape without dyn
#include <deft/expr.hpp>
using namespace deft;
auto x = random_uniform(shape<dyn, 3>);
