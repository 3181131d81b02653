// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzzing.hpp: what the fuzz targets share. Each defines `seeds`, valid inputs from
// which libFuzzer starts, and LLVMFuzzerTestOneInput; `--write_seeds=DIR` writes the seeds and
// ends.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deft/core/error.hpp>
#include <deft/core/text.hpp>
#include <fstream>
#include <span>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace fuzzing {

using bytes = std::vector<std::byte>;

/// Of the target.
std::vector<bytes> seeds();

/// Ends the process, so that libFuzzer keeps the input.
template <class... Parts>
[[noreturn]] void found(const Parts&... parts) {
  std::fprintf(stderr, "FOUND: %s\n", deft::str(parts...).c_str());
  std::abort();
}

/// Runs `f`, which may throw any error but an internal one. Whether it returned.
template <class F>
bool accepted(F&& f) {
  try {
    f();
    return true;
  } catch (const deft::error& e) {
    if (e.code() == deft::errc::internal) found("an internal error: ", e.what());
    return false;
  }
}

inline std::span<const std::byte> as_bytes(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}
inline void append(bytes& to, std::span<const std::byte> more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// `made` in the place of an input, if there is room; its new size.
inline std::size_t replace(std::uint8_t* data, std::size_t most, const bytes& made) {
  const std::size_t size = std::min(most, made.size());
  if (size) std::memcpy(data, made.data(), size);
  return size;
}

/// What libFuzzer makes of some bytes.
inline void mutate(bytes& b) {
  const std::size_t size = b.size();
  b.resize(size + 64);
  b.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(b.data()), size, b.size()));
}

}  // namespace fuzzing

/// Called first. Each target is one file.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string flag = "--write_seeds=";
  for (int i = 1; i < *argc; ++i) {
    const std::string argument = (*argv)[i];
    if (!argument.starts_with(flag)) continue;
    int number = 0;
    for (const auto& seed : fuzzing::seeds()) {
      std::ofstream file(deft::str(argument.substr(flag.size()), "/seed_", number++));
      file.write(reinterpret_cast<const char*>(seed.data()),
                 static_cast<std::streamsize>(seed.size()));
      if (!file.flush()) std::exit(1);
    }
    std::exit(0);
  }
  return 0;
}
