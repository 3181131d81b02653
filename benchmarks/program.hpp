// SPDX-License-Identifier: Apache-2.0
// benchmarks/program.hpp: runs another program and talks to it line by line: peers and the demo.
#pragma once
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace bench {

/// A child process, which is terminated with this object.
class program {
 public:
  explicit program(std::vector<std::string> command) {
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      for (int fd : {to[0], to[1], from[0], from[1]}) close(fd);
      std::vector<char*> argv;
      for (auto& s : command) argv.push_back(s.data());
      argv.push_back(nullptr);
      execvp(argv[0], argv.data());
      _exit(127);
    }
    close(to[0]), close(from[1]);
    to_ = fdopen(to[1], "w");
    from_ = fdopen(from[0], "r");
    signal(SIGPIPE, SIG_IGN);
  }
  ~program() {
    fclose(to_), fclose(from_);
    if (!ended_) kill(-pid_, SIGTERM), wait();
  }
  program(const program&) = delete;

  /// Its next line, without the newline; empty at the end of its output.
  std::string line() {
    std::string s;
    for (int c; (c = fgetc(from_)) != EOF && c != '\n';) s += static_cast<char>(c);
    return s;
  }
  /// Sends a line, and returns the answer.
  std::string ask(const std::string& s = {}) {
    fprintf(to_, "%s\n", s.c_str());
    fflush(to_);
    return line();
  }
  bool more() {
    int c = fgetc(from_);
    return c != EOF && ungetc(c, from_) != EOF;
  }
  /// Waits for its end, and returns its exit code.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
  FILE *to_, *from_;
  bool ended_ = false;
};

/// The interpreter of a virtual environment of peers, "" for none.
inline std::string python_of(const std::string& environment) {
  std::string python = environment.empty() ? "" : environment + "/bin/python";
  return python.empty() || access(python.c_str(), X_OK) != 0 ? "" : python;
}

}  // namespace bench
