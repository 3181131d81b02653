// build error: an extent is a size, or dyn
#include <deft/core/dims.hpp>
auto f() { return deft::shape<-2>; }
