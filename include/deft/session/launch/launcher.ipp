// SPDX-License-Identifier: Apache-2.0
// deft/session/launch/launcher.ipp: children in one process group, their output line by line.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deft/core/file.hpp>
#include <deft/core/thread.hpp>
#include <deft/session/cluster/cluster_spec.hpp>
#include <deft/session/launch/launcher.hpp>
#include <deft/transport/listener.hpp>
#include <map>
#include <utility>

namespace deft {
namespace {

volatile sig_atomic_t launcher_interrupted = 0;  ///< by this signal

/// A task: a child process, the start of its current line, and its progress bar.
struct launched_task {
  std::string job;
  int index = 0;
  std::string name;
  pid_t pid = -1;
  ext::file_descriptor output;
  std::chrono::steady_clock::time_point started;
  std::string partial, bar;
};

/// A task that is to be started again, after a pause.
struct restart {
  std::string job;
  int index;
  std::chrono::steady_clock::time_point at;
  int code;  ///< with which it has failed
};

/// Throws invalid_argument for a cluster that cannot be.
void check_jobs(const std::vector<std::pair<std::string, int>>& jobs) {
  if (jobs.empty())
    ext::fail(errc::invalid_argument, "[cluster_main] a cluster has at least one job");
  std::vector<cluster_spec::job> spec;
  for (const auto& [job, tasks] : jobs) {
    if (tasks < 1)
      ext::fail(errc::invalid_argument, "[cluster_main] job \"", job, "\" has ", tasks,
                " tasks; expected at least 1");
    spec.emplace_back(job,
                      std::vector<std::string>(static_cast<std::size_t>(tasks), "localhost:0"));
  }
  cluster_spec checked(std::move(spec));
}

/// The processors of the `k`-th of `n` tasks, of those that this process may use. With fewer
/// processors than tasks, each task has one, in turn.
cpu_set_t processors_of(unsigned k, unsigned n) {
  cpu_set_t all, own;
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof all, &all) != 0) CPU_ZERO(&all);
  std::vector<int> usable;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &all)) usable.push_back(i);
  const auto p = static_cast<unsigned>(usable.size());
  const bool enough = p >= n;
  for (unsigned i = 0; i < p; ++i)
    if (enough ? i >= k * p / n && i < (k + 1) * p / n : i == k % p) CPU_SET(usable[i], &own);
  return own;
}

class cluster_launcher {
 public:
  cluster_launcher(const std::vector<std::pair<std::string, int>>& jobs,
                   const std::vector<std::string>& arguments, const launch_options& options)
      : arguments_(arguments),
        only_servers_(std::ranges::all_of(jobs, [](const auto& j) { return j.first == "ps"; })),
        options_(options),
        restarts_(options.restarts),
        terminal_(isatty(STDOUT_FILENO)) {
    check_jobs(jobs);
    std::vector<std::string> own{"task_index", "listen_fd"};
    for (const auto& [job, tasks] : jobs) own.push_back(job + "_hosts");
    for (const auto& flag : own)
      if (names(arguments, flag))
        ext::fail(errc::invalid_argument, "--", flag,
                  " is set by the launcher; to start a single task by hand, give --job_name, too");
    for (const auto& [flag, value] :
         {std::pair{"restarts", options.restarts}, {"grace", options.grace}})
      if (value < 0)
        ext::fail(errc::invalid_argument, "--", flag, "=", value, ": expected a number from 0");
    for (const auto& [job, tasks] : jobs) tasks_in_all_ += static_cast<unsigned>(tasks);
    unsigned k = 0;
    for (const auto& [job, tasks] : jobs) {
      std::string list;
      for (int i = 0; i < tasks; ++i) {
        const int fd = ext::listen_socket("localhost:0");
        sockets_[{job, i}] = ext::file_descriptor(fd);
        if (options.bind) processors_[{job, i}] = processors_of(k++, tasks_in_all_);
        list += ext::str(i ? "," : "", ext::address_of_socket(fd));
        std::printf("/job:%s/task:%d at %s\n", job.c_str(), i, ext::address_of_socket(fd).c_str());
      }
      hosts_.push_back(ext::str("--", job, "_hosts=", list));
    }
    std::fflush(stdout);
    // Blocked except during ppoll, so that no signal is missed between the check and the wait.
    struct sigaction note {};
    note.sa_handler = [](int signal) { launcher_interrupted = signal; };
    sigset_t ends;
    sigemptyset(&ends);
    for (int s : {SIGINT, SIGTERM, SIGHUP}) sigaction(s, &note, nullptr), sigaddset(&ends, s);
    pthread_sigmask(SIG_BLOCK, &ends, &unblocked_);
    for (const auto& [job, tasks] : jobs)
      for (int i = 0; i < tasks; ++i) start(job, i);
    if (restarts_ == 0) sockets_.clear();
  }

  int run() {
    while (!tasks_.empty() || !restarts_to_come_.empty()) {
      if (const int signal = launcher_interrupted) {
        launcher_interrupted = 0;
        if (!asked_by_) asked_by_ = signal;
        // A wrapper may pass on one Ctrl-C twice.
        if (ending_ && std::chrono::steady_clock::now() > ended_at_ + std::chrono::seconds(1))
          kill_all(SIGKILL);
        code_ = 128 + asked_by_;
        end_all();
      }
      end_servers();
      start_again();
      std::vector<pollfd> fds;
      for (auto& t : tasks_) fds.push_back({t.output.get(), POLLIN, 0});
      const timespec moment{0, 100'000'000};
      const bool looks_again = ending_ || !restarts_to_come_.empty();
      if (ppoll(fds.data(), fds.size(), looks_again ? &moment : nullptr, &unblocked_) < 0) continue;
      if (ending_ && !killed_ && std::chrono::steady_clock::now() >= kill_at_) kill_late();
      for (std::size_t i = fds.size(); i-- > 0;)
        if (fds[i].revents && !read_lines(tasks_[i])) {
          int status = 0;
          while (waitpid(tasks_[i].pid, &status, 0) < 0 && errno == EINTR) {
          }
          const bool failed = (!WIFEXITED(status) || WEXITSTATUS(status) != 0) && !ending_;
          const bool again = failed && restarts_ > 0 && (!is_server(tasks_[i]) || needs_servers());
          if (failed) {
            clear_bars();
            std::fprintf(stderr, "%s %s%s\n", tasks_[i].name.c_str(),
                         WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "has failed",
                         again ? ", and is started again" : end_by_one().c_str());
          }
          finish_bar(tasks_[i]);
          const launched_task ended = std::move(tasks_[i]);
          tasks_.erase(tasks_.begin() + static_cast<std::ptrdiff_t>(i));
          if (!failed) continue;
          const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
          if (again) {
            --restarts_;
            restarts_to_come_.push_back({ended.job, ended.index, time_to_restart(ended), code});
          } else {
            fail_with(code);
          }
        }
    }
    return code_;
  }

 private:
  /// What the failure of a task that is not started again means for the others.
  std::string end_by_one() const {
    if (ending_ || tasks_in_all_ == 1) return {};
    return options_.restarts ? ", which ends the job"
                             : ", which ends the job: --restarts=N starts such a task again";
  }
  /// A task that fails at once is not started again at once, each time later than the last.
  std::chrono::steady_clock::time_point time_to_restart(const launched_task& ended) {
    using namespace std::chrono_literals;
    constexpr std::chrono::milliseconds shortest = 500ms, longest = 10s;
    const auto now = std::chrono::steady_clock::now();
    auto& pause = pauses_[{ended.job, ended.index}];
    if (now - ended.started > longest) pause = 0ms;
    const auto at = now + pause;
    pause = std::clamp<std::chrono::milliseconds>(2 * pause, shortest, longest);
    return at;
  }
  void start_again() {
    // The last worker may have ended while a server's restart was pending.
    if (!ending_ && !restarts_to_come_.empty() && !needs_servers()) {
      clear_bars();
      for (const auto& r : restarts_to_come_)
        std::fprintf(stderr, "%s/%d is not started again, as all workers have ended\n",
                     r.job.c_str(), r.index);
      fail_with(restarts_to_come_.front().code);
    }
    if (ending_) return restarts_to_come_.clear();
    const auto now = std::chrono::steady_clock::now();
    for (auto& r : std::exchange(restarts_to_come_, {}))
      r.at <= now ? start(r.job, r.index) : restarts_to_come_.push_back(std::move(r));
    if (restarts_ == 0 && restarts_to_come_.empty()) sockets_.clear();
  }

  void start(const std::string& job, int index) {
    const int own = sockets_.at({job, index}).get();
    std::vector<std::string> words{program_invocation_name, "--job_name=" + job,
                                   "--task_index=" + std::to_string(index),
                                   "--listen_fd=" + std::to_string(own)};
    words.insert(words.end(), hosts_.begin(), hosts_.end());
    // The tasks share the processors: threads of one that spin take time from the others.
    const auto processors = static_cast<unsigned>(ext::usable_processors());
    if (!names(arguments_, "intra_op_threads") && processors_.empty())
      words.push_back("--intra_op_threads=" +
                      std::to_string(std::max(1u, processors / tasks_in_all_)));
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    std::vector<char*> argv;
    for (auto& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      ext::fail(errc::resource_exhausted, "cannot make a pipe for ", job, "/", index, ": ",
                std::strerror(errno));
    ext::file_descriptor output(ends[0]), input(ends[1]);
    pid_t launcher = getpid();
    pid_t pid = fork();
    if (pid < 0)
      ext::fail(errc::resource_exhausted, "cannot start a process for ", job, "/", index, ": ",
                std::strerror(errno));
    if (pid == 0) {
      setpgid(0, group_);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != launcher) _exit(1);  // the launcher died before prctl
      pthread_sigmask(SIG_SETMASK, &unblocked_, nullptr);
      if (const auto at = processors_.find({job, index}); at != processors_.end())
        sched_setaffinity(0, sizeof at->second, &at->second);
      // Threads that wake wait until others sleep or have had their share: a parameter server and
      // two workers on two processors make a fifth more steps than if they interrupted each other.
      if (const sched_param none{}; processors < tasks_in_all_)
        sched_setscheduler(0, SCHED_BATCH, &none);
      setenv("DEFT_LOG_NAME", ext::str(job, "/", index).c_str(), 1);
      dup2(input.get(), STDOUT_FILENO);
      for (const auto& [task, fd] : sockets_)
        if (fd.get() != own) ::close(fd.get());
      execv("/proc/self/exe", argv.data());
      _exit(127);
    }
    setpgid(pid, group_ ? group_ : pid);
    if (!group_) group_ = pid;
    launched_task t;
    t.job = job;
    t.index = index;
    t.name = job + "/" + std::to_string(index);
    t.pid = pid;
    t.output = std::move(output);
    t.started = std::chrono::steady_clock::now();
    tasks_.push_back(std::move(t));
  }

  /// False once the task has closed its output.
  bool read_lines(launched_task& t) {
    char text[4096];
    ssize_t n = ::read(t.output.get(), text, sizeof text);
    if (n < 0) return errno == EINTR;
    if (n == 0) return false;
    t.partial.append(text, static_cast<std::size_t>(n));
    for (std::size_t end; (end = t.partial.find('\n')) != t.partial.npos;
         t.partial.erase(0, end + 1))
      show(t, t.partial.substr(0, end));
    std::fflush(stdout);
    return true;
  }

  void show(launched_task& t, const std::string& line) {
    long long step = 0, last = 0;
    int rest = 0;
    if (terminal_ && std::sscanf(line.c_str(), "step %lld/%lld%n", &step, &last, &rest) == 2 &&
        last > 0) {
      t.bar = t.name + " " + progress_bar(step, last) + " " + line;
      draw_bars();
      return;
    }
    clear_bars();
    std::printf("%s: %s\n", t.name.c_str(), line.c_str());
    draw_bars();
  }

  // Bars stay at the bottom of the terminal; other lines are printed above them.
  void clear_bars() {
    if (shown_) std::printf("\x1b[%dA\x1b[J", shown_);
    shown_ = 0;
  }
  void draw_bars() {
    clear_bars();
    for (const auto& t : tasks_)
      if (!t.bar.empty()) std::printf("%s\n", t.bar.c_str()), ++shown_;
  }
  void finish_bar(launched_task& t) {
    if (t.bar.empty()) return;
    clear_bars();
    std::printf("%s\n", t.bar.c_str());
    t.bar.clear();
    draw_bars();
  }

  static bool names(const std::vector<std::string>& arguments, const std::string& flag) {
    return std::ranges::any_of(arguments, [&](const std::string& a) {
      return a == "--" + flag || a.starts_with("--" + flag + "=");
    });
  }
  void fail_with(int code) {
    code_ = code;
    end_all();
  }
  /// Workers first: what they save as they end may be on parameter servers.
  void end_all() {
    if (std::exchange(ending_, true)) return;
    ended_at_ = std::chrono::steady_clock::now();
    kill_at_ = ended_at_ + std::chrono::seconds(options_.grace);
    for (auto& t : tasks_)
      if (!is_server(t)) ::kill(t.pid, SIGTERM);
  }
  void end_servers() {
    if (!ending_ || servers_told_ || !std::ranges::all_of(tasks_, &cluster_launcher::is_server))
      return;
    servers_told_ = true;
    kill_all(SIGTERM);
  }
  void kill_late() {
    killed_ = true;
    clear_bars();
    for (const auto& t : tasks_)
      std::fprintf(stderr, "%s has not ended within %d s, and is killed\n", t.name.c_str(),
                   options_.grace);
    kill_all(SIGKILL);
  }
  static bool is_server(const launched_task& t) { return t.job == "ps"; }
  /// Whether a worker runs or is to be started again, or the cluster has none. Otherwise a server
  /// that is started again would wait without end for workers to connect.
  bool needs_servers() const {
    return only_servers_ || !std::ranges::all_of(tasks_, &cluster_launcher::is_server) ||
           std::ranges::any_of(restarts_to_come_, [](const restart& r) { return r.job != "ps"; });
  }
  void kill_all(int signal) {
    for (auto& t : tasks_) ::kill(t.pid, signal);
  }

  std::vector<std::string> arguments_, hosts_;
  /// As long as tasks may be started.
  std::map<std::pair<std::string, int>, ext::file_descriptor> sockets_;
  std::map<std::pair<std::string, int>, cpu_set_t> processors_;  ///< of each task, if it is bound
  const bool only_servers_;
  const launch_options options_;
  int restarts_;  ///< that are left
  pid_t group_ = 0;
  bool terminal_, ending_ = false, servers_told_ = false, killed_ = false;
  int shown_ = 0, code_ = 0;
  int asked_by_ = 0;  ///< the first signal
  sigset_t unblocked_{};
  std::chrono::steady_clock::time_point ended_at_, kill_at_;
  unsigned tasks_in_all_ = 0;
  std::vector<launched_task> tasks_;
  std::vector<restart> restarts_to_come_;
  std::map<std::pair<std::string, int>, std::chrono::milliseconds> pauses_;  ///< before the next
};

}  // namespace

std::string progress_bar(std::int64_t step, std::int64_t last) {
  constexpr std::int64_t width = 20;  // with step, loss and speed the line has 80 columns
  const double part = last > 0 ? static_cast<double>(step) / static_cast<double>(last) : 0;
  const auto full =
      static_cast<std::int64_t>(static_cast<double>(width) * std::clamp(part, 0., 1.));
  std::string bar;
  for (std::int64_t i = 0; i < width; ++i) bar += i < full ? "█" : "░";
  return bar;
}

int launch_cluster(const std::vector<std::pair<std::string, int>>& jobs,
                   const std::vector<std::string>& arguments, const launch_options& options) {
  return cluster_launcher(jobs, arguments, options).run();
}

}  // namespace deft
