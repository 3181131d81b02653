// build error: deft relies on NaN and exact rounding: compile without -ffast-math, -Ofast and the
// like several errors flags: -funsafe-math-optimizations
#include <deft/expr.hpp>
