// build error: an ndarray is not a std::vector: std::vector<T>\(v\.begin\(\), v\.end\(\)\) copies
// got: takes<vector<float>,ndarray<float,3>>
#include <deft/deft.hpp>
#include <vector>
using namespace deft;
placeholder<float, 3> x("x");
void f(session& s) { std::vector<float> v = s.run(x); }
