// build error: \[embedding\] expects ids of int32 or int64, and got another dtype
// got: takes<embedding,tensor<float,-1>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn> ids("ids");
auto y = embedding<10, 4>(ids, "words");
