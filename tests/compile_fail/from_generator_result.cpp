// build error: \[from_generator\] expects a function that returns an std::optional
#include <deft/data/pipeline.hpp>
auto numbers() {
  return deft::from_generator([] { return 1; });
}
