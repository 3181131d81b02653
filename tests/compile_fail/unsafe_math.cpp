// build error: deft relies on NaN and exact rounding: compile without -ffast-math, -Ofast
// several errors
// flags: -funsafe-math-optimizations
#include <deft/expr.hpp>
