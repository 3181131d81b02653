// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzz_csv.cpp: whatever a CSV file has, its rows are read or refused. An input is a
// byte of options, and the file.
#include <deft/data/csv.hpp>

#include "fuzzing.hpp"

using namespace deft;
using fuzzing::bytes;

std::vector<bytes> fuzzing::seeds() {
  return {bytes_of("\0001,a,2,true\n3.5e-400,\"b,\"\"c\"\"\",-4,0\r\n"),
          bytes_of("\1x, y ,z,w\n1,a,2,1\n\n,,,\n"), bytes_of("\2a;\"b\nc\";3;false"),
          bytes_of("\3w;x;y;z\n1;2;3;4\n"), bytes_of("\4w,x,y\n1e-5000,2,3\n")};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const fuzzing::memory_file file(fuzzing::as_bytes(data + 1, size - 1));
  csv_options options{.header = (data[0] & 1) != 0, .separator = data[0] & 2 ? ';' : ','};
  std::size_t rows = 0;
  fuzzing::accepted_file([&] {
    if (data[0] & 4) {
      options.header = true;
      options.columns = {"x", "y"};
      for (auto& row : csv<double, std::int64_t>(file.path(), options)) {
        (void)row;
        ++rows;
      }
    } else {
      for (auto& row :
           csv<std::optional<float>, std::string, std::optional<std::int32_t>, std::optional<bool>>(
               file.path(), options)) {
        (void)row;
        ++rows;
      }
    }
  });
  if (rows > size) fuzzing::found("more rows than bytes: ", rows);
  return 0;
}
