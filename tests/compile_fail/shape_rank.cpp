// build error: a tensor's rank is at most 8
#include <deft/core/dims.hpp>
auto f() { return deft::shape<1, 2, 3, 4, 5, 6, 7, 8, 9>; }
