// SPDX-License-Identifier: Apache-2.0
// tests/fuzz/fuzzing.hpp: what the fuzz targets share. Each defines `seeds`, valid inputs from
// which libFuzzer starts, and LLVMFuzzerTestOneInput; `--write_seeds=DIR` writes the seeds and
// ends.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deft/core/error.hpp>
#include <deft/core/file.hpp>
#include <deft/core/printable.hpp>
#include <deft/core/text.hpp>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
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
  std::fprintf(stderr, "FOUND: %s\n", deft::ext::str(parts...).c_str());
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

/// The same for a file of others; what is wrong with it is said in one line of UTF-8.
template <class F>
bool accepted_file(F&& f) {
  return accepted([&] {
    try {
      f();
    } catch (const deft::error& e) {
      if (deft::ext::printable(e.message()) != e.message())
        found("an error is not one line of UTF-8: ", deft::ext::printable(e.message()));
      throw;
    }
  });
}

/// A file of these bytes, which no directory has.
class memory_file {
 public:
  explicit memory_file(std::span<const std::byte> content)
      : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    for (std::size_t at = 0; at < content.size();) {
      const auto n = ::write(file_.get(), content.data() + at, content.size() - at);
      if (n <= 0) std::exit(1);
      at += static_cast<std::size_t>(n);
    }
  }
  std::string path() const { return deft::ext::str("/proc/self/fd/", file_.get()); }

 private:
  deft::ext::file_descriptor file_;
};

/// A directory in memory, where the system has one, until the process ends.
inline const std::string& directory() {
  static const struct made {
    std::string path = deft::ext::str(
        std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp", "/deft_fuzz_", ::getpid());
    made() { std::filesystem::create_directories(path); }
    ~made() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  } it;
  return it.path;
}

inline bytes bytes_of(std::string_view text) {
  const auto all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}
inline std::string_view text_of(std::span<const std::byte> b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

/// Takes values from an input, one after the other; zeros at its end.
class taker {
 public:
  explicit taker(std::span<const std::byte> from) : left_(from) {}
  bool empty() const { return left_.empty(); }
  template <class T>
  T number() {
    T v{};
    const std::size_t n = std::min(sizeof v, left_.size());
    if (n) std::memcpy(&v, left_.data(), n);
    left_ = left_.subspan(n);
    return v;
  }
  /// As many bytes as the first one says.
  std::string text() {
    const std::size_t n = std::min<std::size_t>(number<std::uint8_t>(), left_.size());
    std::string s(text_of(left_.first(n)));
    left_ = left_.subspan(n);
    return s;
  }

 private:
  std::span<const std::byte> left_;
};

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
      std::ofstream file(deft::ext::str(argument.substr(flag.size()), "/seed_", number++));
      file.write(reinterpret_cast<const char*>(seed.data()),
                 static_cast<std::streamsize>(seed.size()));
      if (!file.flush()) std::exit(1);
    }
    std::exit(0);
  }
  return 0;
}
