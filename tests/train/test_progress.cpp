// SPDX-License-Identifier: Apache-2.0
#include <deft/train/progress.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "training.hpp"

using namespace deft;

namespace {

/// Calls `f` with standard output to `file`.
template <class F>
void with_output(int file, F&& f) {
  std::fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  dup2(file, STDOUT_FILENO);
  f();
  std::fflush(stdout);
  dup2(before, STDOUT_FILENO);
  close(before);
}

/// What `f` prints to standard output, which is then not a terminal.
template <class F>
std::string printed(F&& f) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file);
  with_output(fileno(file), f);
  std::string text;
  std::rewind(file);
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

/// Trains for four steps, after announcing `shown` to the bar.
void train(std::int64_t shown) {
  const char* argv[] = {"test"};
  const int code = task_main(1, argv, [&](task& self) {
    variable<float> w("w", 1.f);
    auto step = global_step();
    auto loss = w * w;
    operation train = sgd(0.25).minimize(loss, step);
    monitored_session s(self, {.hooks = {stop_at_step(4), show_progress(loss, shown, 100)}});
    while (!s.should_stop()) s.run(train);
  });
  CHECK(code == 0);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  return lines;
}

}  // namespace

TEST_CASE("the first line has no speed yet, the last one has") {
  auto lines = lines_of(printed([] { train(4); }));
  REQUIRE(lines.size() >= 2);
  CHECK(lines.front() == "step 1/4  loss 1.0000");
  CHECK(lines.back().starts_with("step 4/4  loss 0.0156  "));
  CHECK(lines.back().ends_with(" examples/s"));
}

TEST_CASE("a step beyond the last is shown as the last") {
  auto lines = lines_of(printed([] { train(3); }));
  REQUIRE(!lines.empty());
  CHECK(lines.back().starts_with("step 3/3  "));
}

TEST_CASE("on a terminal a bar is drawn again in its place") {
  const int screen = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(screen >= 0);
  REQUIRE(grantpt(screen) == 0);
  REQUIRE(unlockpt(screen) == 0);
  const int terminal = open(ptsname(screen), O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  with_output(terminal, [] { train(4); });
  close(terminal);
  std::string text;
  char part[256];
  // What was written arrives in parts; then there is nobody who could write more.
  for (ssize_t n; (n = read(screen, part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(n));
  close(screen);
  CAPTURE(text);
  CHECK(text.starts_with("\r" + progress_bar(1, 4) + " step 1/4  loss 1.0000"));
  CHECK(text.find("\r" + progress_bar(4, 4) + " step 4/4  loss 0.0156") != text.npos);
  CHECK(text.find('\n') == text.size() - 1);  // only at the end
}

TEST_CASE("the bar grows with the steps") {
  auto full = [](std::int64_t step, std::int64_t last) {
    const std::string bar = progress_bar(step, last);
    int n = 0;
    for (std::size_t at = 0; (at = bar.find("█", at)) != bar.npos; ++at) ++n;
    return n;
  };
  CHECK(full(0, 10) == 0);
  CHECK(full(5, 10) == 10);
  CHECK(full(10, 10) == 20);
  CHECK(full(12, 10) == 20);
  CHECK(full(1, 0) == 0);
}

TEST_CASE("hooks for a loss refuse one that is not of numbers") {
  placeholder<std::string, 2> names("names");
  placeholder<bool> chosen("chosen");
  CHECK(testing::error_of([&] { show_progress(names, 1, 1); })
            .starts_with("invalid_argument: [show_progress] expects a loss of numbers, and got "
                         "string(2)"));
  CHECK(testing::error_of([&] { stop_on_nan(chosen); })
            .starts_with("invalid_argument: [stop_on_nan] expects a loss of numbers, and got "
                         "bool()"));
}
