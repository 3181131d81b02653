// build error: use of deleted function
#include <deft/core/ndarray.hpp>
using namespace deft;
bool same(const ndarray<float, 2>& a, const ndarray<float, 3>& b) { return a == b; }
