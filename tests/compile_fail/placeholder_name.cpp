// build error: \[placeholder\] expects a name, as in placeholder<float, 10>
// got: takes<placeholder<float,3>,missing>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> a;
