// build error: \[filter\] expects a function that takes the components of an element, as constants,
#include <deft/data/pipeline.hpp>
#include <string>
auto some(deft::dataset<int> numbers) {
  return numbers.filter([](int n) { return std::to_string(n); });
}
