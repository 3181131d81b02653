// SPDX-License-Identifier: Apache-2.0
// deft/session/launch/task.ipp: a task, from start to exit code.
#pragma once
#include <signal.h>
#include <deft/core/printable.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <deft/core/text.hpp>
#include <deft/graph/graph.hpp>
#include <deft/kernels/team.hpp>
#include <deft/session/launch/launcher.hpp>
#include <deft/session/launch/task.hpp>
#include <deft/session/launch/task_flags.ipp>
#include <deft/session/master/master.hpp>
#include <deft/session/server/server_impl.hpp>
#include <deft/transport/signals.hpp>
#include <list>
#include <optional>

namespace deft {

namespace ext {

/// What SIGINT and SIGTERM do while a task runs. A single process keeps the default actions unless
/// somebody asks for others.
class task_signals {
 public:
  task_signals(task& self, std::chrono::nanoseconds patience) : self_(self), patience_(patience) {
    self.signals_ = this;
    if (self.distributed()) listen();
  }
  ~task_signals() {
    self_.signals_ = nullptr;
    termination_.reset();
  }
  task_signals(const task_signals&) = delete;

  /// The signal that came; 0: none.
  int number() const { return number_; }

  std::shared_ptr<void> call(std::function<void()> f) {
    std::lock_guard lock(guard_);
    handlers_.push_back(std::move(f));
    if (!termination_) listen();
    return {static_cast<void*>(&handlers_.back()), [this, at = std::prev(handlers_.end())](void*) {
              std::unique_ptr<detail::termination_signals> ended;
              std::lock_guard removing(guard_);
              handlers_.erase(at);
              if (handlers_.empty() && !self_.distributed()) ended.swap(termination_);
            }};
  }

 private:
  void listen() {
    termination_ = std::make_unique<detail::termination_signals>([this](int number) {
      number_ = number;
      std::lock_guard lock(guard_);
      for (const auto& h : handlers_) h();
      if (handlers_.empty() && self_.distributed()) end_server();
    });
  }

  /// A task that serves first lets the others end.
  void end_server() {
    if (!self_.server().coordination().end_join(patience_)) self_.server().interrupt();
  }

  task& self_;
  const std::chrono::nanoseconds patience_;
  std::atomic<int> number_{0};
  std::mutex guard_;
  std::list<std::function<void()>> handlers_;
  std::unique_ptr<detail::termination_signals> termination_;
};

}  // namespace ext

std::shared_ptr<void> task::when_asked_to_stop(std::function<void()> f) {
  return signals_ ? signals_->call(std::move(f)) : nullptr;
}

namespace {

/// Runs a task whose flags were read, and returns the exit code.
int live(task& self, std::chrono::nanoseconds patience, const std::function<void(task&)>& body) {
  ext::task_signals signals(self, patience);
  constexpr auto linger = std::chrono::milliseconds(500);
  if (self.is_ps()) {
    self.server().join();
    // The last workers may not have read yet that they need not wait.
    self.server().stop(linger);
  } else {
    try {
      body(self);
      for (const std::string& a : self.unread())
        logging::warning("the argument \"", a, "\" was not read by the program");
    } catch (const std::exception& e) {
      if (!signals.number()) throw;
      logging::info(self.device(), " ends: ", e.what());
    }
    // If all tasks are being ended at once, the others may not answer any more.
    if (self.distributed())
      self.server().coordination().done(std::chrono::milliseconds(signals.number() ? 500 : 2'000));
  }
  const int signal = signals.number();
  if (!signal) return self.has_failed() ? 1 : 0;
  logging::info(self.device(), " was ended by ", signal == SIGINT ? "SIGINT" : "SIGTERM");
  if (self.distributed()) self.server().stop(linger);
  return 128 + signal;
}

}  // namespace

task::task(int argc, const char* const* argv, const std::vector<program_flag>& own) : own_(own) {
  command_line line = read_command_line(argc, argv, own);
  const flags::variables_map& given = line.of_deft;
  rest_ = std::move(line.rest);
  read_ = std::move(line.known);
  if (given.count("help")) {
    std::printf("%s", help_text(own).c_str());
    std::exit(0);
  }
  auto text = [&](const char* name) {
    return given.count(name) ? given[name].as<std::string>() : std::string();
  };
  job_ = text("job_name");
  if (job_.empty() && given.count("job_name"))
    ext::fail(errc::invalid_argument, "--job_name= needs the name of a job, as ps or worker");
  index_ = whole(given, "task_index");
  data_ = text("data");
  log_device_placement_ = given["log_device_placement"].as<bool>();
  device_settings_ = settings_given(given);
  ext::set_intra_op_threads(whole(given, "intra_op_threads"));
  if (job_.empty()) {
    if (!line.hosts.empty())
      ext::fail(errc::invalid_argument,
                "--ps_hosts and --worker_hosts need --job_name, ps or worker");
    return;
  }
  std::vector<cluster_spec::job> jobs;
  // The same cluster in whatever order ps and workers are given.
  std::stable_partition(line.hosts.begin(), line.hosts.end(),
                        [](const auto& h) { return h.first == "ps"; });
  for (const auto& [name, hosts] : line.hosts)
    jobs.emplace_back(name, split_hosts(hosts, name + hosts_of_job));
  cluster_ = cluster_spec(std::move(jobs));
  if (!cluster_.has(job_))
    ext::fail(errc::invalid_argument, "--job_name=", job_, " needs --", job_, "_hosts");
  if (index_ < 0 || index_ >= cluster_.tasks(job_))
    ext::fail(errc::invalid_argument, "--task_index=", index_, ": job ", job_, " has ",
              cluster_.tasks(job_), cluster_.tasks(job_) == 1 ? " task" : " tasks");
  server_options options;
  options.device_settings = device_settings_;
  options.listen_fd = whole(given, "listen_fd");
  options.away = std::chrono::seconds(whole(given, "lost_worker_timeout"));
  if (given.count("file_root"))
    options.file_roots = given["file_root"].as<std::vector<std::string>>();
  if (given.count("secret_file"))
    options.credentials = credentials::from_secret_file(text("secret_file"));
  options.credentials.certificate = text("tls_cert");
  options.credentials.key = text("tls_key");
  options.credentials.authority = text("tls_ca");
  options.credentials.insecure = given["insecure"].as<bool>();
  server_ = std::make_unique<deft::server>(cluster_, job_, index_, options);
  cluster_ = server_->cluster();
}

task::~task() = default;

bool task::is_chief() const {
  return !distributed() || (!is_ps() && task_name(job_, index_) == cluster_.chief());
}

std::string task::device() const {
  return to_string(distributed() ? task_name(job_, index_) : ext::local_task_name());
}

const std::vector<std::string>& task::args() const {
  std::lock_guard lock(guard_);
  read_.assign(rest_.size(), true);
  return rest_;
}

std::optional<std::string> task::value_of(const std::string& name) const {
  if (!own_.empty() && !are_named(own_, name))
    ext::fail(errc::invalid_argument, "[flag] --", name,
              " is not among the flags that the program named: add it to them, for --help");
  std::lock_guard lock(guard_);
  const std::string word = "--" + name, equals = word + "=";
  for (std::size_t i = 0; i < rest_.size(); ++i) {
    if (rest_[i].starts_with(equals)) {
      read_[i] = true;
      return rest_[i].substr(equals.size());
    }
    if (rest_[i] != word) continue;
    if (i + 1 == rest_.size()) ext::fail(errc::invalid_argument, word, " needs a value");
    read_[i] = read_[i + 1] = true;
    return rest_[i + 1];
  }
  return {};
}

std::string task::flag(const std::string& name, const std::string& otherwise) const {
  return value_of(name).value_or(otherwise);
}

long long task::integer_in(const std::string& name, const std::string& text, long long lowest,
                           unsigned long long highest) {
  long long v = 0;
  const char* const end = text.data() + text.size();
  const auto [at, e] = std::from_chars(text.data(), end, v);
  if (e != std::errc::invalid_argument && at == end &&
      (e == std::errc::result_out_of_range || v < lowest ||
       (v > 0 && static_cast<unsigned long long>(v) > highest)))
    ext::fail(errc::invalid_argument, "--", name, "=", text, " is out of range: expected ", lowest,
              " to ", highest);
  if (e != std::errc() || at != end)
    ext::fail(errc::invalid_argument, "--", name, "=", text, " is not an integer");
  return v;
}

double task::number_in(const std::string& name, const std::string& text) {
  double v = 0;
  const char* const end = text.data() + text.size();
  const auto [at, e] = std::from_chars(text.data(), end, v);
  if (e != std::errc() || at != end)
    ext::fail(errc::invalid_argument, "--", name, "=", text, " is not a number");
  return v;
}

bool task::truth_in(const std::string& name, const std::string& text) {
  for (const auto& [no, yes] :
       {std::pair{"false", "true"}, {"0", "1"}, {"no", "yes"}, {"off", "on"}})
    if (text == no || text == yes) return text == yes;
  ext::fail(errc::invalid_argument, "--", name, "=", text, " is neither true nor false");
}

std::vector<std::string> task::unread() const {
  std::lock_guard lock(guard_);
  std::vector<std::string> left;
  for (std::size_t i = 0; i < rest_.size(); ++i)
    if (!read_[i]) left.push_back(rest_[i]);
  return left;
}

deft::server& task::server() {
  if (!server_)
    ext::fail(errc::failed_precondition,
              "[task] a single process has no server; a task of a cluster does (--job_name)");
  return *server_;
}

std::shared_ptr<ext::engine> task::engine_for(const session_options& options) {
  session_options o = options;
  o.log_device_placement |= log_device_placement_;
  if (server_) return server_->impl_->make_engine(o);
  return ext::make_master(std::make_shared<ext::task_runtime>(
                              ext::local_task_name(), merge(ext::settings_of(o), device_settings_),
                              ext::file_roots::anywhere()),
                          nullptr, o);
}

int task_main(int argc, const char* const* argv, const std::function<void(task&)>& body) {
  return task_main(argc, argv, {}, body);
}

int task_main(int argc, const char* const* argv, const std::vector<program_flag>& own,
              const std::function<void(task&)>& body) {
  std::string who = argc ? argv[0] : "deft";
  try {
    const flags::variables_map given = read_command_line(argc, argv, own).of_deft;
    if (given.count("help")) {
      std::printf("%s", help_text(own).c_str());
      return 0;
    }
    const auto patience = std::chrono::milliseconds(500LL * whole(given, "grace"));
    task self(argc, argv, own);
    if (self.distributed()) who = self.device();
    graph g;
    auto in_graph = as_default(g);
    return live(self, patience, body);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", who.c_str(), ext::printable_lines(e.what()).c_str());
    return 1;
  }
}

int cluster_main(int argc, const char* const* argv,
                 const std::vector<std::pair<std::string, int>>& jobs,
                 const std::function<void(task&)>& body) {
  return cluster_main(argc, argv, jobs, {}, body);
}

int cluster_main(int argc, const char* const* argv,
                 const std::vector<std::pair<std::string, int>>& jobs,
                 const std::vector<program_flag>& own, const std::function<void(task&)>& body) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (const auto& a : arguments)
    if (a.starts_with("--job_name") || a == "--single" || a == "--help")
      return task_main(argc, argv, own, body);
  try {
    const flags::variables_map given = read_command_line(argc, argv, own).of_deft;
    return launch_cluster(jobs, arguments,
                          {.restarts = whole(given, "restarts"),
                           .grace = whole(given, "grace"),
                           .bind = given["bind"].as<bool>()});
  } catch (const error& e) {
    std::fprintf(stderr, "%s: %s\n", argc ? argv[0] : "deft",
                 ext::printable_lines(e.what()).c_str());
    return 1;
  }
}

}  // namespace deft
