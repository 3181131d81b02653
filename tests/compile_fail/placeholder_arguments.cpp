// build error: expected the dtype and the extents, as in placeholder<float, dyn, 784>
#include <deft/expr.hpp>
using namespace deft;
placeholder a("a");
