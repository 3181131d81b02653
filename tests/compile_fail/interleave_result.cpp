// build error: \[interleave\] expects a function that returns a dataset
#include <deft/data/pipeline.hpp>
auto lines(deft::dataset<int> numbers) {
  return numbers.interleave([](int n) { return n; }, 2);
}
