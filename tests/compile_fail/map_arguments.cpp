// build error: \[map\] expects a function that takes the components of an element
#include <deft/data/pipeline.hpp>
#include <string>
auto lengths(deft::dataset<std::string> lines) {
  return lines.map([](int, int) { return 1; });
}
