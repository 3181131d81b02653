// SPDX-License-Identifier: Apache-2.0
#include <deft/core/file.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "../data/temporary_folder.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;
using testing::names_in;
using testing::temporary_folder;

TEST_CASE("a file gets its name when it is committed, and is deleted otherwise") {
  const temporary_folder folder;
  const std::string path = folder / "a";
  write_file(file_roots::anywhere(), path, "first");
  {
    file_writer w(file_roots::anywhere(), path);
    w.write(0, "second", 6);
    CHECK(names_in(folder).size() == 2);
    CHECK(read_file(file_roots::anywhere(), path, 100) == "first");
  }
  CHECK(names_in(folder) == std::vector<std::string>{"a"});
  CHECK(read_file(file_roots::anywhere(), path, 100) == "first");
  write_file(file_roots::anywhere(), path, "second");
  CHECK(read_file(file_roots::anywhere(), path, 100) == "second");
  CHECK(error_of([&] {
          read_file(file_roots::anywhere(), path, 5);
        }).starts_with("resource_exhausted: " + path + " has 6 bytes"));
}

TEST_CASE("a file that is replaced keeps who may read and write it") {
  const temporary_folder folder;
  const std::string path = folder / "kept";
  write_file(file_roots::anywhere(), path, "old");
  for (const mode_t mode : {0600, 0640, 0444}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    write_file(file_roots::anywhere(), path, "new");
    struct stat now {};
    REQUIRE(::stat(path.c_str(), &now) == 0);
    CHECK((now.st_mode & 07777) == mode);
  }
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
    CHECK(e.find("Too many levels") == std::string::npos);
    CHECK(error_of([&] { write_file(roots, path, "x"); }).starts_with("permission_denied: "));
  };
  refused(folder / "c");
  refused(folder / "in/../c");
  refused(folder / "in/link/secret");
  refused("/etc/passwd");
  const std::string rule =
      " is a symbolic link, and none is followed below the directories of "
      "--file_root";
  const std::string secret = folder / "in/secret", link = folder / "in/link";
  CHECK(error_of([&] { read_file(roots, secret, 10); }) ==
        str("permission_denied: cannot open ", secret, ": \"", secret, "\"", rule));
  CHECK(error_of([&] { read_file(roots, link + "/deep/a", 10); }) ==
        str("permission_denied: cannot open the directory \"", link, "/deep\": \"", link, "\"",
            rule));
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
  // Also by a link that leads there from outside.
  fs::create_directory_symlink(folder / "in/deep", outside / "deep");
  CHECK(read_file(roots, outside / "deep/a", 10) == "text");

  CHECK(error_of([&] {
          read_file(file_roots(), folder / "in/b", 10);
        }).ends_with("it was started without --file_root"));
  CHECK(error_of([] { file_roots({"/no/such/directory"}); }).starts_with("not_found: "));
}

TEST_CASE("which links are followed does not depend on the order of the roots") {
  namespace fs = std::filesystem;
  const temporary_folder folder;
  const std::string data = folder / "data", models = folder / "models";
  fs::create_directories(fs::path(data));
  fs::create_directories(fs::path(models) / "m");
  fs::create_directory_symlink(models + "/m", data + "/m");
  write_file(file_roots::anywhere(), models + "/m/a", "text");
  const std::string path = data + "/m/a";
  // A link below a root is refused, even if it leads below another one.
  for (const auto& roots : {file_roots({data, models}), file_roots({models, data})}) {
    CHECK(error_of([&] { read_file(roots, path, 10); }).starts_with("permission_denied: "));
    CHECK(read_file(roots, models + "/m/a", 10) == "text");
  }
  // Unless that link was given as a root.
  for (const auto& roots : {file_roots({data, data + "/m"}), file_roots({data + "/m", data}),
                            file_roots({"/", data + "/m"})})
    CHECK(read_file(roots, path, 10) == "text");
  CHECK(error_of([&] {
          read_file(file_roots({"/", models}), path, 10);
        }).starts_with("permission_denied: "));
}

TEST_CASE("a disk without room is resource_exhausted, and the older file remains") {
  const temporary_folder folder;
  const std::string path = folder / "a";
  write_file(file_roots::anywhere(), path, "first");
  const testing::file_size_limit full(1000);
  CHECK(error_of([&] {
          write_file(file_roots::anywhere(), path, std::string(2000, 'x'));
        }).starts_with("resource_exhausted: cannot write " + path));
  CHECK(names_in(folder) == std::vector<std::string>{"a"});
  CHECK(read_file(file_roots::anywhere(), path, 100) == "first");
}

TEST_CASE("writers of one file do not meet, and a reader finds it whole") {
  const temporary_folder folder;
  const std::string path = folder / "a";
  const auto text = [](int i) {
    const auto size = static_cast<std::size_t>(20'000 + 10'000 * (i % 3));
    return std::string(size, static_cast<char>('a' + i % 3));
  };
  write_file(file_roots::anywhere(), path, text(0));
  std::vector<std::string> errors(3);
  std::atomic<int> writing{2};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        errors[static_cast<std::size_t>(t)] = error_of([&] {
          for (int i = 0; i < 100; ++i) write_file(file_roots::anywhere(), path, text(i + t));
        });
        --writing;
      });
    threads.emplace_back([&] {
      errors[2] = error_of([&] {
        while (writing > 0) {
          const std::string read = read_file(file_roots::anywhere(), path, 1 << 20);
          if (read != text(read[0] - 'a')) fail(errc::data_loss, "a file in parts");
        }
      });
    });
  }
  CHECK(errors == std::vector<std::string>(3, ""));
  CHECK(names_in(folder) == std::vector<std::string>{"a"});
}

TEST_CASE("what a writer has left that did not end is deleted, not what another one writes") {
  const temporary_folder folder;
  const std::string path = folder / "a";
  for (const char* name : {"a.1-0.tmp", "b.1-0.tmp", "a.tmp", "a.b.1-0.tmp", "a.x-0.tmp"})
    testing::write_bytes(folder / name, "x");
  file_writer first(file_roots::anywhere(), path);
  first.write(0, "first", 5);
  CHECK(is_being_written(folder.path(), "a"));
  CHECK_FALSE(is_being_written(folder.path(), "b"));
  write_file(file_roots::anywhere(), path, "second");
  CHECK(is_being_written(folder.path(), "a"));
  std::vector<std::string> all = names_in(folder);
  for (const auto& name : all)
    if (name.starts_with("a.") && completed_name(name) == "a" && name != "a.tmp")
      delete_leftover(folder.path(), name);
  CHECK(names_in(folder) == all);
  first.commit();
  CHECK_FALSE(is_being_written(folder.path(), "a"));
  CHECK(read_file(file_roots::anywhere(), path, 100) == "first");
  CHECK(names_in(folder) ==
        std::vector<std::string>{"a", "a.b.1-0.tmp", "a.tmp", "a.x-0.tmp", "b.1-0.tmp"});
  delete_leftover(folder.path(), "b.1-0.tmp");
  CHECK_FALSE(std::filesystem::exists(folder / "b.1-0.tmp"));

  CHECK(completed_name("m-1.index.json.12-3.tmp") == "m-1.index.json");
  CHECK(completed_name("m-1.index.json.tmp") == "m-1.index.json");
  CHECK(completed_name("m-1.index.json") == "m-1.index.json");
  const std::string long_name(255, 'n');
  write_file(file_roots::anywhere(), folder / long_name, "x");
  CHECK(read_file(file_roots::anywhere(), folder / long_name, 1) == "x");
}

TEST_CASE("for one's own user links are followed, and what they lead to is replaced") {
  namespace fs = std::filesystem;
  const temporary_folder folder;
  const auto anywhere = file_roots::anywhere();
  fs::create_directories(folder / "blobs");
  fs::create_directories(folder / "snapshots/1");
  testing::write_bytes(folder / "blobs/x", "blob");
  fs::create_symlink("../../blobs/x", folder / "snapshots/1/model");
  fs::create_symlink("1/model", folder / "snapshots/twice");
  fs::create_directory_symlink("snapshots/1", folder / "latest");
  for (const char* name :
       {"snapshots/1/model", "snapshots/twice", "latest/model", "latest/../1/model"}) {
    CAPTURE(name);
    write_file(anywhere, folder / name, name);
    CHECK(read_file(anywhere, folder / name, 100) == name);
    CHECK(testing::read_bytes(folder / "blobs/x") == name);
  }
  CHECK(fs::is_symlink(folder / "snapshots/1/model"));
  CHECK(fs::is_symlink(folder / "snapshots/twice"));
  fs::create_symlink("new", folder / "blobs/to_nothing");
  write_file(anywhere, folder / "blobs/to_nothing", "made");
  CHECK(testing::read_bytes(folder / "blobs/new") == "made");
  CHECK(std::distance(fs::directory_iterator(folder / "blobs"), {}) == 3);
  fs::create_symlink("circle", folder / "circle");
  for (const auto& e : {error_of([&] { read_file(anywhere, folder / "circle", 9); }),
                        error_of([&] { write_file(anywhere, folder / "circle", ""); })})
    CHECK(e.ends_with("Too many levels of symbolic links"));
}

TEST_CASE("only regular files are replaced, and read") {
  namespace fs = std::filesystem;
  const temporary_folder folder;
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  fs::create_symlink("fifo", folder / "to_fifo");
  fs::create_directories(folder / "directory");
  fs::create_symlink("/dev/null", folder / "null");
  const file_descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string at = folder / "socket";
  REQUIRE(at.size() < sizeof address.sun_path);
  at.copy(address.sun_path, at.size());
  REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  const auto before = names_in(folder);
  for (const auto& [name, kind] :
       {std::pair("fifo", "a FIFO"), std::pair("to_fifo", "a FIFO"),
        std::pair("directory", "a directory"), std::pair("directory/", "a directory"),
        std::pair("null", "a device"), std::pair("socket", "a socket")}) {
    const std::string path = folder / name;
    CAPTURE(path);
    CHECK(error_of([&] { write_file(file_roots::anywhere(), path, "x"); }) ==
          str("failed_precondition: cannot write ", path, ": it is ", kind,
              ", and only a regular file is replaced; choose another name"));
    if (name != std::string("directory/"))
      CHECK(error_of([&] { read_file(file_roots::anywhere(), path, 9); }) ==
            str("not_found: cannot open ", path, ": it is ", kind, ", not a regular file"));
  }
  CHECK(names_in(folder) == before);
  const file_roots roots({folder.path()});
  CHECK(error_of([&] { write_file(roots, folder / "fifo", "x"); }).find("it is a FIFO") !=
        std::string::npos);
  CHECK(error_of([&] { read_file(roots, folder / "fifo", 9); }).find("it is a FIFO") !=
        std::string::npos);
  CHECK(error_of([] {
          write_file(file_roots::anywhere(), "/dev/null", "x");
        }).find("it is a device") != std::string::npos);
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("text files that programs are given in /proc can be read") {
  const temporary_folder folder;
  testing::write_bytes(folder / "a", "text");
  const file_descriptor f(::open((folder / "a").c_str(), O_RDONLY | O_CLOEXEC));
  const std::string path = str("/proc/self/fd/", f.get());
  CHECK(read_file(file_roots::anywhere(), path, 9) == "text");
  std::filesystem::remove(folder / "a");
  CHECK(error_of([&] {
          write_file(file_roots::anywhere(), path, "x");
        }).ends_with("the file that it leads to has no name"));
}
