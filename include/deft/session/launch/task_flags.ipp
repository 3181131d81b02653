// SPDX-License-Identifier: Apache-2.0
// deft/session/launch/task_flags.ipp: the flags of a task, and how a command line is read.
#pragma once
#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <deft/core/failure.hpp>
#include <deft/core/text.hpp>
#include <deft/session/launch/launcher.hpp>
#include <deft/session/launch/task.hpp>
#include <deft/session/master/master.hpp>
#include <deft/session/server/server.hpp>
#include <limits>

namespace deft {
namespace {

namespace flags = boost::program_options;

/// A number on the command line, which is read the same under every locale.
template <class T>
struct number {
  T value{};
};
template <class T>
void validate(boost::any& v, const std::vector<std::string>& words, number<T>*, int) {
  flags::validators::check_first_occurrence(v);
  const std::string& text = flags::validators::get_single_string(words);
  const char* const end = text.data() + text.size();
  number<T> n;
  const auto [at, e] = std::from_chars(text.data(), end, n.value);
  if (e != std::errc() || at != end) throw flags::invalid_option_value(text);
  v = n;
}
auto whole() { return flags::value<number<int>>(); }
auto whole(int otherwise) {
  return whole()->default_value(number<int>{otherwise}, std::to_string(otherwise));
}
int whole(const flags::variables_map& given, const std::string& name) {
  return given[name].as<number<int>>().value;
}

constexpr const char* hosts_of_job = "_hosts";

/// The flag of a setting of devices.
void add_flag(flags::options_description& d, const ext::device_setting& s) {
  using form = ext::device_setting::form;
  const std::string flag(s.flag), meaning(s.meaning);
  const auto add = [&](const flags::value_semantic* value) {
    d.add_options()(flag.c_str(), value, meaning.c_str());
  };
  if (s.is == form::truth) return add(flags::bool_switch());
  if (s.is == form::number) return add(flags::value<number<double>>());
  add(s.otherwise ? whole(static_cast<int>(*s.otherwise)) : whole());
}
/// What the command line says about the devices.
ext::device_settings settings_given(const flags::variables_map& given) {
  using form = ext::device_setting::form;
  ext::device_settings all;
  ext::each_device_setting([&](const ext::device_setting& s) {
    const std::string flag(s.flag);
    if (!given.count(flag)) return;
    const flags::variable_value& v = given[flag];
    if (s.is != form::truth)
      all.set(flag, s.is == form::whole ? v.as<number<int>>().value : v.as<number<double>>().value);
    else if (v.as<bool>())
      all.set(flag, 1);
  });
  return all;
}

flags::options_description task_flags() {
  flags::options_description d("Flags of every deft task");
  d.add_options()("help", "print these flags");
  d.add_options()("job_name", flags::value<std::string>(),
                  "ps, or worker or any other job; default: a single process");
  d.add_options()("single", flags::bool_switch(),
                  "one process, of a program that otherwise starts a cluster");
  d.add_options()("restarts", whole(0),
                  "how many tasks that fail a program that starts a cluster starts again");
  d.add_options()("grace", whole(launch_options().grace),
                  "seconds that tasks of a cluster have to end after Ctrl-C, before it kills them; "
                  "a parameter server waits half of that for its workers");
  d.add_options()("bind", flags::bool_switch(),
                  "processors of its own for each task of a cluster that a program starts");
  d.add_options()("task_index", whole(0), "number of the task within its job, from 0");
  d.add_options()("ps_hosts", flags::value<std::string>(),
                  "host:port of each parameter server, separated by commas");
  d.add_options()("worker_hosts", flags::value<std::string>(),
                  "host:port of each worker, separated by commas; a job of another name has such "
                  "a flag, too");
  d.add_options()(
      "lost_worker_timeout",
      whole(static_cast<int>(
          std::chrono::duration_cast<std::chrono::seconds>(server_options().away).count())),
      "seconds that a parameter server, or a worker that serves, waits for a worker that was lost");
  d.add_options()("log_device_placement", flags::bool_switch(), "log the device of every node");
  d.add_options()("data", flags::value<std::string>(), "folder of the data");
  d.add_options()("file_root", flags::value<std::vector<std::string>>(),
                  "directory below which sessions may let this task read and write files, as "
                  "checkpoints; may be repeated");
  ext::each_device_setting([&](const ext::device_setting& s) { add_flag(d, s); });
  d.add_options()("intra_op_threads", whole(0),
                  "threads of one kernel; 0: one per processor that the task may use");
  d.add_options()("listen_fd", whole(-1), "listening socket inherited from a launcher");
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
std::vector<std::pair<std::string, std::string>> environment_variables() {
  std::vector<std::pair<std::string, std::string>> all{
      {"DEFT_LOG",
       "what is logged to standard error: debug, info, warning (the default), error, off"},
      {"DEFT_LOG_NAME", "whose lines of the log they are, as worker/0"},
      {"DEFT_SECRET", "the cluster's shared secret, of tasks and sessions"},
      {"DEFT_TLS_CERT", "as --tls_cert, of tasks and sessions"},
      {"DEFT_TLS_KEY", "as --tls_key, of tasks and sessions"},
      {"DEFT_TLS_CA", "as --tls_ca, of tasks and sessions"},
      {"DEFT_LOCAL_SOCKETS",
       "0: tasks on one machine talk by TCP alone; 1: through local sockets (the default)"},
  };
  ext::each_device_setting([&](const ext::device_setting& s) {
    const bool truth = s.is == ext::device_setting::form::truth;
    if (!s.variable.empty())
      all.emplace_back(s.variable, ext::str(truth ? "0 or 1: as --" : "as --", s.flag));
  });
  all.insert(all.end(),
             {{"DEFT_CUBLASLT", "path of libcublasLt.so"},
              {"DEFT_CUDNN", "path of libcudnn.so"},
              {"DEFT_CACHE_DIR", "folder of what was compiled for GPUs; empty: none is kept"},
              {"CUDA_HOME, CUDA_PATH", "where libraries of the CUDA Toolkit are looked for"}});
  return all;
}

std::string help_text(const std::vector<program_flag>& own) {
  std::string text;
  const auto line = [&text](std::string name, const std::string& meaning) {
    name.resize(std::max<std::size_t>(name.size(), 30), ' ');
    text += ext::str("  ", name, " ", meaning, "\n");
  };
  if (!own.empty()) text += "Flags of this program:\n";
  for (const auto& f : own) line(ext::str("--", f.name), f.meaning);
  text += "Flags of every deft task:\n";
  const flags::options_description known = task_flags();
  for (const auto& o : known.options()) line(o->format_name(), o->description());
  text += "Environment variables:\n";
  for (const auto& [name, meaning] : environment_variables()) line(name, meaning);
  return text;
}

std::vector<std::string> split_hosts(const std::string& text, const std::string& flag) {
  std::vector<std::string> hosts;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin)
      ext::fail(errc::invalid_argument, "--", flag, "=", text, " contains an empty address");
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
  for (const auto& k : known) all.push_back(ext::str("--", k.name));
  const flags::options_description of_deft = task_flags();
  for (const auto& o : of_deft.options()) all.push_back(ext::str("--", o->long_name()));
  const std::string meant = ext::closest(word, all);
  ext::fail(errc::invalid_argument, "\"", argument, "\" is not a flag of this program",
            meant == word ? "; --help lists its flags" : ext::str("; did you mean ", meant, "?"));
}

/// A command line: the flags of deft, and the other arguments.
struct command_line {
  flags::variables_map of_deft;
  std::vector<std::pair<std::string, std::string>> hosts;  ///< by job, in their order
  std::vector<std::string> rest;
  std::vector<bool> known;  ///< of rest: the flags that the program named, and their values
};

/// The job of a flag such as "worker_hosts"; empty for another.
std::string job_of(const std::string& flag, const std::vector<program_flag>& own) {
  return flag.ends_with(hosts_of_job) && !are_named(own, flag)
             ? flag.substr(0, flag.size() - std::string_view(hosts_of_job).size())
             : std::string();
}

/// Splits the words, of which an empty one may be a value, into deft's flags and the rest.
flags::parsed_options split_words(const std::vector<std::string>& words,
                                  const flags::options_description& of_deft,
                                  const std::vector<program_flag>& own, command_line& read) {
  flags::parsed_options given(&of_deft, flags::command_line_style::allow_long);
  const bool in_job =
      std::ranges::any_of(words, [](const std::string& w) { return w.starts_with("--job_name"); });
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string &word = words[i], name = word.substr(0, word.find('='));
    const auto* const known =
        name.starts_with("--") ? of_deft.find_nothrow(name.substr(2), false) : nullptr;
    const std::string job = name.starts_with("--") ? job_of(name.substr(2), own) : std::string();
    if (!known && (job.empty() || !in_job)) {
      read.rest.push_back(word);
      continue;
    }
    flags::option o;
    o.string_key = name.substr(2);
    const bool takes_value = !known || known->semantic()->max_tokens() > 0;
    if (name.size() < word.size()) {
      if (!takes_value) ext::fail(errc::invalid_argument, name, " takes no value: ", word);
      o.value.push_back(word.substr(name.size() + 1));
    } else if (takes_value) {
      if (++i == words.size()) ext::fail(errc::invalid_argument, name, " needs a value");
      o.value.push_back(words[i]);
    }
    if (!job.empty()) {
      if (std::ranges::count(read.hosts, job, &std::pair<std::string, std::string>::first))
        ext::fail(errc::invalid_argument, name, " is given twice");
      read.hosts.emplace_back(job, o.value[0]);
    }
    if (known) given.options.push_back(std::move(o));
  }
  return given;
}

/// Throws invalid_argument unless the value of a flag is between `lowest` and `highest`.
void check_range(const flags::variables_map& given, const std::string& name, int lowest,
                 int highest = std::numeric_limits<int>::max()) {
  if (const int v = whole(given, name); v < lowest || v > highest)
    ext::fail(
        errc::invalid_argument, "--", name, "=", v, ": expected ",
        lowest == 1 && highest == std::numeric_limits<int>::max() ? "at least " : "a number from ",
        lowest,
        highest == std::numeric_limits<int>::max() ? std::string() : ext::str(" to ", highest));
}

/// Throws invalid_argument naming the flag that is wrong. Only a program that names its flags
/// refuses those that it does not know.
command_line read_command_line(int argc, const char* const* argv,
                               const std::vector<program_flag>& own) {
  command_line read;
  try {
    const flags::options_description of_deft = task_flags();
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    flags::store(split_words(words, of_deft, own, read), read.of_deft);
    flags::notify(read.of_deft);
  } catch (const flags::error& e) {
    ext::fail(errc::invalid_argument, e.what());
  }
  if (read.of_deft.count("help")) return read;
  check_range(read.of_deft, "restarts", 0);
  check_range(read.of_deft, "grace", 0);
  check_range(read.of_deft, "lost_worker_timeout", 0);
  ext::each_device_setting([&](const ext::device_setting& s) {
    if (s.least_of_flag) check_range(read.of_deft, std::string(s.flag), *s.least_of_flag);
  });
  check_range(read.of_deft, "intra_op_threads", 0, ext::most_intra_op_threads);
  check_range(read.of_deft, "listen_fd", -1);
  read.known.resize(read.rest.size());
  if (own.empty()) return read;
  for (std::size_t i = 0; i < read.rest.size(); ++i) {
    const std::string &all = read.rest[i], word = all.substr(0, all.find('='));
    if (all.size() < 2 || !all.starts_with('-')) continue;
    if (!word.starts_with("--") || !are_named(own, word.substr(2)))
      fail_unknown_flag(all, word, own);
    read.known[i] = true;
    if (word.size() < all.size()) continue;
    if (++i == read.rest.size()) ext::fail(errc::invalid_argument, word, " needs a value");
    read.known[i] = true;
  }
  return read;
}

}  // namespace

}  // namespace deft
