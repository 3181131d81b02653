// build error: \[from_slices\] expects arrays, or vectors; no mixture of them
#include <deft/data/pipeline.hpp>
auto pairs(deft::ndarray<float, deft::dyn> a, int b) { return deft::from_slices(a, b); }
