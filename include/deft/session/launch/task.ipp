// SPDX-License-Identifier: Apache-2.0
// deft/session/launch/task.ipp: the flags of a task, from start to exit code.
#pragma once
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <boost/program_options.hpp>
#include <charconv>
#include <cstdio>
#include <deft/core/text.hpp>
#include <deft/execute/team.hpp>
#include <deft/graph/graph.hpp>
#include <deft/session/launch/launcher.hpp>
#include <deft/session/launch/task.hpp>
#include <deft/session/master/master.hpp>
#include <deft/session/server/server_impl.hpp>
#include <deft/transport/signals.hpp>
#include <list>
#include <optional>

namespace deft {
namespace {

namespace flags = boost::program_options;

flags::options_description task_flags() {
  flags::options_description d("Flags of every deft task");
  d.add_options()("help", "print these flags");
  d.add_options()("job_name", flags::value<std::string>(),
                  "ps or worker; default: a single process");
  d.add_options()("single", flags::bool_switch(),
                  "one process, of a program that otherwise starts a cluster");
  d.add_options()("restarts", flags::value<int>()->default_value(0),
                  "how many tasks that fail a program that starts a cluster starts again");
  d.add_options()("grace", flags::value<int>()->default_value(launch_options().grace),
                  "seconds that tasks of a cluster have to end after Ctrl-C, before it kills them");
  d.add_options()("bind", flags::bool_switch(),
                  "processors of its own for each task of a cluster that a program starts");
  d.add_options()("task_index", flags::value<int>()->default_value(0),
                  "number of the task within its job, from 0");
  d.add_options()("ps_hosts", flags::value<std::string>(),
                  "host:port of each parameter server, separated by commas");
  d.add_options()("worker_hosts", flags::value<std::string>(),
                  "host:port of each worker, separated by commas");
  d.add_options()("log_device_placement", flags::bool_switch(), "log the device of every node");
  d.add_options()("data", flags::value<std::string>(), "folder of the data");
  d.add_options()("file_root", flags::value<std::vector<std::string>>(),
                  "directory below which sessions may let this task read and write files, as "
                  "checkpoints; may be repeated");
  d.add_options()("cpu_devices", flags::value<int>()->default_value(1),
                  "number of CPU devices: /cpu:0, /cpu:1, …");
  d.add_options()("simulated_gpus", flags::value<int>(),
                  "number of GPUs that the CPU simulates: /gpu:0, /gpu:1, …");
  d.add_options()("allow_tf32", flags::bool_switch(),
                  "multiply and convolve floats in TF32 on GPUs: faster, with 11 significant bits");
  d.add_options()("gpu_memory_limit", flags::value<double>(),
                  "memory of each GPU for tensors: a fraction, up to 1, or bytes");
  d.add_options()("intra_op_threads", flags::value<int>()->default_value(0),
                  "threads of one kernel; 0: one per processor that the task may use");
  d.add_options()("listen_fd", flags::value<int>()->default_value(-1),
                  "listening socket inherited from a launcher");
  d.add_options()("secret_file", flags::value<std::string>(),
                  "file with the cluster's shared secret, accessible only to its owner");
  d.add_options()("tls_cert", flags::value<std::string>(),
                  "certificate of this task, a PEM file, for TLS on all connections: see "
                  "scripts/make_certificates");
  d.add_options()("tls_key", flags::value<std::string>(),
                  "private key of that certificate, a PEM file");
  d.add_options()("tls_ca", flags::value<std::string>(),
                  "certificate of the authority that signed the certificates of all tasks");
  d.add_options()("insecure", flags::bool_switch(),
                  "serve addresses other than loopback without a secret or TLS");
  return d;
}

/// What the environment decides: a name, and what its value says.
constexpr std::pair<const char*, const char*> environment_variables[] = {
    {"DEFT_LOG",
     "what is logged to standard error: debug, info, warning (the default), error, off"},
    {"DEFT_LOG_NAME", "whose lines of the log they are, as worker/0"},
    {"DEFT_SECRET", "the cluster's shared secret, of tasks and sessions"},
    {"DEFT_TLS_CERT", "as --tls_cert, of tasks and sessions"},
    {"DEFT_TLS_KEY", "as --tls_key, of tasks and sessions"},
    {"DEFT_TLS_CA", "as --tls_ca, of tasks and sessions"},
    {"DEFT_LOCAL_SOCKETS", "0: tasks on one machine talk by TCP alone"},
    {"DEFT_SIMULATED_GPUS", "as --simulated_gpus"},
    {"DEFT_ALLOW_TF32", "0 or 1: as --allow_tf32"},
    {"DEFT_GPU_MEMORY_LIMIT", "as --gpu_memory_limit"},
    {"DEFT_CUBLASLT", "path of libcublasLt.so"},
    {"DEFT_CUDNN", "path of libcudnn.so"},
    {"DEFT_CACHE_DIR", "folder of what was compiled for GPUs; empty: none is kept"},
    {"CUDA_HOME, CUDA_PATH", "where libraries of the CUDA Toolkit are looked for"},
};

std::string help_text(const std::vector<program_flag>& own) {
  std::string text;
  const auto line = [&text](std::string name, const std::string& meaning) {
    name.resize(std::max<std::size_t>(name.size(), 30), ' ');
    text += str("  ", name, " ", meaning, "\n");
  };
  if (!own.empty()) text += "Flags of this program:\n";
  for (const auto& f : own) line(str("--", f.name), f.meaning);
  text += "Flags of every deft task:\n";
  const flags::options_description known = task_flags();
  for (const auto& o : known.options()) line(o->format_name(), o->description());
  text += "Environment variables:\n";
  for (const auto& [name, meaning] : environment_variables) line(name, meaning);
  return text;
}

std::vector<std::string> split_hosts(const std::string& text, const char* flag) {
  std::vector<std::string> hosts;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin)
      fail(errc::invalid_argument, "--", flag, "=", text, " contains an empty address");
    hosts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return hosts;
}

bool are_named(const std::vector<program_flag>& own, std::string_view name) {
  return std::ranges::any_of(own, [&](const program_flag& f) { return f.name == name; });
}

/// Throws invalid_argument for `argument`, which begins with `word`. Suggests a flag of the program
/// or of deft that is spelled almost alike.
[[noreturn]] void fail_unknown_flag(const std::string& argument, const std::string& word,
                                    const std::vector<program_flag>& known) {
  std::vector<std::string> all;
  for (const auto& k : known) all.push_back(str("--", k.name));
  const flags::options_description of_deft = task_flags();
  for (const auto& o : of_deft.options()) all.push_back(str("--", o->long_name()));
  const std::string meant = closest(word, all);
  fail(errc::invalid_argument, "\"", argument, "\" is not a flag of this program",
       meant == word ? "; --help lists its flags" : str("; did you mean ", meant, "?"));
}

/// A command line: the flags of deft, and the other arguments.
struct command_line {
  flags::variables_map of_deft;
  std::vector<std::string> rest;
  std::vector<bool> known;  ///< of rest: the flags that the program named, and their values
};

/// Throws invalid_argument naming the flag that is wrong. Only a program that names its flags
/// refuses those that it does not know.
command_line read_command_line(int argc, const char* const* argv,
                               const std::vector<program_flag>& own) {
  command_line read;
  try {
    const flags::options_description of_deft = task_flags();
    auto parsed = flags::command_line_parser(argc, argv)
                      .options(of_deft)
                      .style(flags::command_line_style::unix_style ^
                             flags::command_line_style::allow_guessing)
                      .allow_unregistered()
                      .run();
    flags::store(parsed, read.of_deft);
    flags::notify(read.of_deft);
    read.rest = flags::collect_unrecognized(parsed.options, flags::include_positional);
  } catch (const flags::error& e) {
    fail(errc::invalid_argument, e.what());
  }
  read.known.resize(read.rest.size());
  if (own.empty() || read.of_deft.count("help")) return read;
  for (std::size_t i = 0; i < read.rest.size(); ++i) {
    const std::string &all = read.rest[i], word = all.substr(0, all.find('='));
    if (all.size() < 2 || !all.starts_with('-')) continue;
    if (!word.starts_with("--") || !are_named(own, word.substr(2)))
      fail_unknown_flag(all, word, own);
    read.known[i] = true;
    if (word.size() < all.size()) continue;
    if (++i == read.rest.size()) fail(errc::invalid_argument, word, " needs a value");
    read.known[i] = true;
  }
  return read;
}

}  // namespace

/// What SIGINT and SIGTERM do while a task runs. A single process keeps the default actions unless
/// somebody asks for others.
class task_signals {
 public:
  explicit task_signals(task& self) : self_(self) {
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
      if (handlers_.empty() && self_.distributed()) self_.server().interrupt();
    });
  }

  task& self_;
  std::atomic<int> number_{0};
  std::mutex guard_;
  std::list<std::function<void()>> handlers_;
  std::unique_ptr<detail::termination_signals> termination_;
};

std::shared_ptr<void> task::when_asked_to_stop(std::function<void()> f) {
  return signals_ ? signals_->call(std::move(f)) : nullptr;
}

namespace {

/// Runs a task whose flags were read, and returns the exit code.
int live(task& self, const std::function<void(task&)>& body) {
  task_signals signals(self);
  if (self.is_ps()) {
    self.server().join();
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
  if (self.distributed()) self.server().stop(std::chrono::milliseconds(500));
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
  index_ = given["task_index"].as<int>();
  data_ = text("data");
  log_device_placement_ = given["log_device_placement"].as<bool>();
  cpu_devices_ = given["cpu_devices"].as<int>();
  if (cpu_devices_ < 1)
    fail(errc::invalid_argument, "--cpu_devices=", cpu_devices_, ": expected at least 1");
  if (given.count("simulated_gpus")) simulated_gpus_ = given["simulated_gpus"].as<int>();
  if (given["allow_tf32"].as<bool>()) allow_tf32_ = true;
  if (given.count("gpu_memory_limit")) gpu_memory_limit_ = given["gpu_memory_limit"].as<double>();
  set_intra_op_threads(given["intra_op_threads"].as<int>());
  std::vector<cluster_spec::job> jobs;
  if (given.count("ps_hosts")) jobs.emplace_back("ps", split_hosts(text("ps_hosts"), "ps_hosts"));
  if (given.count("worker_hosts"))
    jobs.emplace_back("worker", split_hosts(text("worker_hosts"), "worker_hosts"));
  if (job_.empty()) {
    if (!jobs.empty())
      fail(errc::invalid_argument, "--ps_hosts and --worker_hosts need --job_name, ps or worker");
    return;
  }
  if (job_ != "ps" && job_ != "worker")
    fail(errc::invalid_argument, "--job_name=", job_, " is neither ps nor worker");
  cluster_ = cluster_spec(std::move(jobs));
  if (!cluster_.has(job_))
    fail(errc::invalid_argument, "--job_name=", job_, " needs --", job_, "_hosts");
  if (index_ < 0 || index_ >= cluster_.tasks(job_))
    fail(errc::invalid_argument, "--task_index=", index_, ": job ", job_, " has ",
         cluster_.tasks(job_), cluster_.tasks(job_) == 1 ? " task" : " tasks");
  server_options options;
  options.cpu_devices = cpu_devices_;
  options.simulated_gpus = simulated_gpus_;
  options.allow_tf32 = allow_tf32_;
  options.gpu_memory_limit = gpu_memory_limit_;
  options.listen_fd = given["listen_fd"].as<int>();
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

std::string task::device() const {
  return to_string(distributed() ? task_name(job_, index_) : local_task_name());
}

const std::vector<std::string>& task::args() const {
  std::lock_guard lock(guard_);
  read_.assign(rest_.size(), true);
  return rest_;
}

std::optional<std::string> task::value_of(const std::string& name) const {
  if (!own_.empty() && !are_named(own_, name))
    fail(errc::invalid_argument, "[flag] --", name,
         " is not among the flags that the program named: add it to them, for --help");
  std::lock_guard lock(guard_);
  const std::string word = "--" + name, equals = word + "=";
  for (std::size_t i = 0; i < rest_.size(); ++i) {
    if (rest_[i].starts_with(equals)) {
      read_[i] = true;
      return rest_[i].substr(equals.size());
    }
    if (rest_[i] != word) continue;
    if (i + 1 == rest_.size()) fail(errc::invalid_argument, word, " needs a value");
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
    fail(errc::invalid_argument, "--", name, "=", text, " is out of range: expected ", lowest,
         " to ", highest);
  if (e != std::errc() || at != end)
    fail(errc::invalid_argument, "--", name, "=", text, " is not an integer");
  return v;
}

double task::number_in(const std::string& name, const std::string& text) {
  double v = 0;
  const char* const end = text.data() + text.size();
  const auto [at, e] = std::from_chars(text.data(), end, v);
  if (e != std::errc() || at != end)
    fail(errc::invalid_argument, "--", name, "=", text, " is not a number");
  return v;
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
    fail(errc::failed_precondition,
         "[task] a single process has no server; a task of a cluster does (--job_name)");
  return *server_;
}

std::shared_ptr<engine> task::engine_for(const session_options& options) {
  session_options o = options;
  o.log_device_placement |= log_device_placement_;
  if (server_) return server_->impl_->make_engine(o);
  o.cpu_devices = std::max(o.cpu_devices, cpu_devices_);
  if (!o.simulated_gpus) o.simulated_gpus = simulated_gpus_;
  if (!o.allow_tf32) o.allow_tf32 = allow_tf32_;
  if (!o.gpu_memory_limit) o.gpu_memory_limit = gpu_memory_limit_;
  return make_master(std::make_shared<task_runtime>(local_task_name(), o.cpu_devices,
                                                    gpu::options_of(o), file_roots::anywhere()),
                     nullptr, o);
}

int task_main(int argc, const char* const* argv, const std::function<void(task&)>& body) {
  return task_main(argc, argv, {}, body);
}

int task_main(int argc, const char* const* argv, const std::vector<program_flag>& own,
              const std::function<void(task&)>& body) {
  std::string who = argc ? argv[0] : "deft";
  try {
    if (read_command_line(argc, argv, own).of_deft.count("help")) {
      std::printf("%s", help_text(own).c_str());
      return 0;
    }
    task self(argc, argv, own);
    if (self.distributed()) who = self.device();
    graph g;
    auto in_graph = as_default(g);
    return live(self, body);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", who.c_str(), e.what());
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
                          {.restarts = given["restarts"].as<int>(),
                           .grace = given["grace"].as<int>(),
                           .bind = given["bind"].as<bool>()});
  } catch (const error& e) {
    std::fprintf(stderr, "%s: %s\n", argc ? argv[0] : "deft", e.what());
    return 1;
  }
}

}  // namespace deft
