// build error: a list of elements can tell one dyn extent only
#include <deft/core/ndarray.hpp>
deft::ndarray<float, deft::dyn, deft::dyn> f() { return {1, 2}; }
