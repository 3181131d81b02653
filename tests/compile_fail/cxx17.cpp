// build error: deft needs C\+\+20: compile with -std=c\+\+20
// several errors
// flags: -std=c++17
#include <deft/deft.hpp>
