// build error: expected the dtype and the extents, as in placeholder<float, dyn, 784> x\("x"\)
#include <deft/expr.hpp>
using namespace deft;
placeholder<float> x("x");
tensor y = x + x;
