// build error: \[csv\] columns are of the types float, double
#include <deft/data/csv.hpp>
auto rows = deft::csv<float, long double>("x.csv");
