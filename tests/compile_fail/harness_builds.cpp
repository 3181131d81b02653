// builds
#include <deft/core/ndarray.hpp>
deft::ndarray<float, 2> f() { return {1, 2}; }
