// build error: "DEFT_IMPLEMENTATION belongs in a .cpp file, not in one that nvcc compiles"
// flags: -D__CUDACC__ -Wfatal-errors
#define DEFT_IMPLEMENTATION
#include <deft/deft.hpp>

int main() {}
