// build error: \[map\] expects a function that returns a value
#include <deft/data/pipeline.hpp>
auto lengths(deft::dataset<int> numbers) {
  return numbers.map([](int) {});
}
