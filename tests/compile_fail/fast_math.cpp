// build error: deft relies on NaN and exact rounding: compile without -ffast-math
// several errors
// flags: -ffast-math
#include <deft/expr.hpp>
