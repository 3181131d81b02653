// SPDX-License-Identifier: Apache-2.0
#include <deft/core/file.hpp>
#include <filesystem>
#include <fstream>

#include "../data/temporary_folder.hpp"
#include "testing.hpp"

using namespace deft;
using testing::error_of;
using testing::temporary_folder;

TEST_CASE("a file gets its name when it is committed, and is deleted otherwise") {
  const temporary_folder folder;
  const std::string path = folder / "a";
  write_file(file_roots::anywhere(), path, "first");
  {
    file_writer w(file_roots::anywhere().open_directory(folder.path()), "a", path);
    w.write(0, "second", 6);
    CHECK(std::filesystem::exists(path + ".tmp"));
    CHECK(read_file(file_roots::anywhere(), path, 100) == "first");
  }
  CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
  CHECK(read_file(file_roots::anywhere(), path, 100) == "first");
  write_file(file_roots::anywhere(), path, "second");
  CHECK(read_file(file_roots::anywhere(), path, 100) == "second");
  CHECK(error_of([&] {
          read_file(file_roots::anywhere(), path, 5);
        }).starts_with("resource_exhausted: " + path + " has 6 bytes"));
}

TEST_CASE("files are used below the roots alone, and no link is followed there") {
  namespace fs = std::filesystem;
  const temporary_folder folder, outside;
  fs::create_directories(fs::path(folder.path()) / "in/deep");
  fs::create_symlink(outside.path(), folder / "in/link");
  std::ofstream(outside / "secret") << "x";
  fs::create_symlink(outside / "secret", folder / "in/secret");
  const file_roots roots({folder / "in"});

  write_file(roots, folder / "in/deep/a", "text");
  CHECK(read_file(roots, folder / "in/../in/deep/a", 10) == "text");
  write_file(roots, folder / "in/b", "text");
  const auto refused = [&](const std::string& path) {
    const std::string e = error_of([&] { read_file(roots, path, 10); });
    CAPTURE(e);
    CHECK(e.starts_with("permission_denied: "));
    CHECK(error_of([&] { write_file(roots, path, "x"); }).starts_with("permission_denied: "));
  };
  refused(folder / "c");
  refused(folder / "in/../c");
  refused(folder / "in/link/secret");
  refused("/etc/passwd");
  CHECK(error_of([&] {
          read_file(roots, folder / "in/secret", 10);
        }).starts_with("permission_denied: "));
  CHECK(error_of([&] { read_file(roots, folder / "in/none/a", 10); }).starts_with("not_found: "));
  write_file(roots, folder / "in/secret", "y");  // replaces the link, not what it leads to
  CHECK(read_file(file_roots::anywhere(), outside / "secret", 10) == "x");

  // A root may be given by a link, and files by either of its names.
  fs::create_directory_symlink(folder / "in", folder / "also");
  const file_roots by_link({folder / "also"});
  CHECK(read_file(by_link, folder / "also/deep/a", 10) == "text");
  CHECK(read_file(by_link, folder / "in/deep/a", 10) == "text");
  CHECK(error_of([&] {
          read_file(by_link, folder / "also/link/secret", 10);
        }).starts_with("permission_denied: "));

  CHECK(error_of([&] {
          read_file(file_roots(), folder / "in/b", 10);
        }).ends_with("it was started without --file_root"));
  CHECK(error_of([] { file_roots({"/no/such/directory"}); }).starts_with("not_found: "));
}

TEST_CASE("a disk without room is resource_exhausted, and the older file remains") {
  const temporary_folder folder;
  const std::string path = folder / "a";
  write_file(file_roots::anywhere(), path, "first");
  const testing::file_size_limit full(1000);
  CHECK(error_of([&] {
          write_file(file_roots::anywhere(), path, std::string(2000, 'x'));
        }).starts_with("resource_exhausted: cannot write " + path));
  CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
  CHECK(read_file(file_roots::anywhere(), path, 100) == "first");
}
