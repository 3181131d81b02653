// build error: \[examples\] expects a function that takes a const example_view&
#include <deft/data/files.hpp>
auto labels(const std::string& file) {
  return deft::examples(file, [](std::string& record) { return record.size(); });
}
