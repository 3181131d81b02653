// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <deft/core/log.hpp>
#include <deft/kernels/gpu/compilations.hpp>
#include <deft/kernels/gpu/nvrtc.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "environment.hpp"
#include "nvrtc.hpp"
#include "programs.hpp"

using namespace deft;
using namespace deft::ext;
using testing::environment;
using testing::skipped_without_nvrtc;

namespace {

/// A temporary folder for one test case.
struct folder {
  std::string name = (std::filesystem::temp_directory_path() / "deft_XXXXXX").string();
  folder() { REQUIRE(mkdtemp(name.data())); }
  ~folder() { std::filesystem::remove_all(name); }
  std::size_t files() const {
    std::size_t n = 0;
    for (const auto& e : std::filesystem::recursive_directory_iterator(name))
      n += e.is_regular_file();
    return n;
  }
};

const std::string source = "extern \"C\" __global__ void f(int* x) { *x = 1; }";
const std::string other = "extern \"C\" __global__ void f(int* x) { *x = 2; }";

std::string read(const std::string& name) {
  std::ifstream f(name, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(f), {});
}
void write(const std::string& name, const std::string& bytes) {
  std::ofstream(name, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace

TEST_CASE("a source is compiled once, in the background") {
  if (skipped_without_nvrtc()) return;
  gpu::code_compiler compiler("");
  const auto a = compiler.ask(source, "compute_90"), b = compiler.ask(other, "compute_90");
  CHECK(compiler.ask(source, "compute_90") == a);
  CHECK(compiler.ask(source, "sm_90") != a);
  a->wait(), b->wait();
  CHECK(a->ready());
  REQUIRE(!a->failure());
  REQUIRE(!b->failure());
  CHECK(a->bytes().find(".visible .entry f") != std::string::npos);
  CHECK(a->bytes() != b->bytes());
  CHECK(compiler.ask(source, "compute_90") == a);
  CHECK(compiler.file_of(source, "compute_90") == "");
}

TEST_CASE("several threads may request the same compilation") {
  if (skipped_without_nvrtc()) return;
  gpu::code_compiler compiler("");
  std::vector<gpu::compilation_ptr> got(8);
  {
    std::vector<std::jthread> threads;
    for (auto& g : got)
      threads.emplace_back([&] {
        g = compiler.ask(source, "compute_90");
        g->wait();
      });
  }
  for (const auto& g : got) CHECK(g == got[0]);
  CHECK(compiler.compiled() == 1);
}

TEST_CASE("a source that is refused fails, once") {
  if (skipped_without_nvrtc()) return;
  logging::set_sink([](logging::level, const std::string&) {});
  gpu::code_compiler compiler("");
  const auto a = compiler.ask("nonsense", "compute_90");
  a->wait();
  REQUIRE(a->failure());
  CHECK(a->failure()->code() == errc::internal);
  CHECK(compiler.ask("nonsense", "compute_90")->failure() == a->failure());
  CHECK(compiler.compiled() == 1);
  logging::set_sink(nullptr);
}

TEST_CASE("a continuation runs before the compilation is ready, or immediately") {
  if (skipped_without_nvrtc()) return;
  gpu::code_compiler compiler("");
  const auto c = compiler.ask(source, "compute_90");
  std::size_t bytes = 0;
  c->then([&](const gpu::compilation& by) { bytes = by.bytes().size(); });
  c->wait();
  CHECK(bytes == c->bytes().size());
  bytes = 0;
  c->then([&](const gpu::compilation& by) { bytes = by.bytes().size(); });
  CHECK(bytes == c->bytes().size());
  CHECK(bytes > 0);
}

TEST_CASE("a missing NVRTC is logged once") {
  if (gpu::has_nvrtc()) return;
  static int lines;
  lines = 0;
  logging::set_sink([](logging::level, const std::string&) { ++lines; });
  gpu::code_compiler compiler("");
  for (const auto& s : {source, other}) {
    const auto c = compiler.ask(s, "sm_90");
    c->wait();
    REQUIRE(c->failure());
    CHECK(c->failure()->code() == errc::unimplemented);
  }
  CHECK(lines == 1);
  logging::set_sink(nullptr);
}

TEST_CASE("code is kept on disk, by source and architecture") {
  if (skipped_without_nvrtc()) return;
  const folder f;
  const std::string directory = f.name + "/a/b";
  auto code_of = [&](const std::string& text, const char* architecture, std::size_t compiled) {
    gpu::code_compiler compiler(directory);
    const auto c = compiler.ask(text, architecture);
    c->wait();
    CHECK(compiler.compiled() == compiled);
    return c->bytes();
  };
  const std::string first = code_of(source, "compute_90", 1);
  CHECK(f.files() == 1);
  CHECK(code_of(source, "compute_90", 0) == first);
  CHECK(code_of(source, "compute_80", 1) != first);
  CHECK(code_of(other, "compute_90", 1) != first);
  CHECK(f.files() == 3);

  const std::string name = gpu::code_compiler(directory).file_of(source, "compute_90");
  const std::string good = read(name);
  REQUIRE(good.size() > first.size() + source.size());
  struct {
    const char* what;
    std::string bytes;
  } const damages[] = {
      {"empty", ""},
      {"short", good.substr(0, 20)},
      {"cut", good.substr(0, good.size() - 1)},
      {"longer", good + "x"},
      {"of another version", "deft gpu code 2\n" + good.substr(16)},
      {"of another source", read(gpu::code_compiler(directory).file_of(other, "compute_90"))},
      {"foreign", std::string(4096, 'x')},
      {"of a huge length", good.substr(0, 16) + std::string(16, '\xff') + good.substr(32)},
  };
  for (const auto& d : damages) {
    CAPTURE(d.what);
    write(name, d.bytes);
    CHECK(code_of(source, "compute_90", 1) == first);
    CHECK(read(name) == good);  // written again
  }
  for (std::size_t at : {std::size_t{41}, good.size() - 5}) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    write(name, flipped);
    CHECK(code_of(source, "compute_90", 1) == first);
  }
  // A file that another user could have written.
  chmod(name.c_str(), 0666);
  CHECK(code_of(source, "compute_90", 1) == first);
  struct stat s {};
  REQUIRE(stat(name.c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0600);
  std::filesystem::remove(name);
  std::filesystem::create_directory(name);
  CHECK(code_of(source, "compute_90", 1) == first);
}

TEST_CASE("a directory that cannot be written is not an error") {
  if (skipped_without_nvrtc()) return;
  gpu::code_compiler compiler("/proc/deft");
  const auto c = compiler.ask(source, "compute_90");
  c->wait();
  CHECK(!c->failure());
}

TEST_CASE("pending compilations fail when the compiler is destroyed") {
  if (skipped_without_nvrtc()) return;
  std::vector<gpu::compilation_ptr> all;
  {
    gpu::code_compiler compiler("");
    for (int i = 0; i < 50; ++i)
      all.push_back(compiler.ask(str("__global__ void f", i, "() {}"), "compute_90"));
  }
  std::size_t failed = 0;
  for (const auto& c : all) {
    CHECK(c->ready());
    if (!c->failure()) continue;
    ++failed;
    CHECK(c->failure()->code() == errc::unavailable);
  }
  CHECK(failed > 0);
}

TEST_CASE("the environment selects the cache directory") {
  const environment home("HOME", "/h"), xdg("XDG_CACHE_HOME", nullptr);
  {
    const environment own("DEFT_CACHE_DIR", nullptr);
    CHECK(gpu::code_directory() == "/h/.cache/deft");
    const environment relative("XDG_CACHE_HOME", "x");
    CHECK(gpu::code_directory() == "/h/.cache/deft");
    const environment absolute("XDG_CACHE_HOME", "/x");
    CHECK(gpu::code_directory() == "/x/deft");
    const environment mine("DEFT_CACHE_DIR", "/y");
    CHECK(gpu::code_directory() == "/y");
    const environment nowhere("DEFT_CACHE_DIR", "");
    CHECK(gpu::code_directory() == "");
  }
  const environment own("DEFT_CACHE_DIR", nullptr), no_home("HOME", nullptr);
  CHECK(gpu::code_directory() == "");
}

TEST_CASE("a process may exit while sources are compiled") {
  if (skipped_without_nvrtc()) return;
  for (int ms : {0, 10, 50, 100, 200}) {
    CAPTURE(ms);
    const std::string command =
        str("DEFT_CACHE_DIR= '", testing::program("compile_and_exit"), "' ", ms);
    const int status = std::system(command.c_str());
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 3);
  }
}
