// SPDX-License-Identifier: Apache-2.0
#include <deft/session/launch/task.hpp>
#include <locale>

#include "session/sessions.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;

namespace {
struct words {
  std::vector<const char*> argv{"program"};
  words(std::initializer_list<const char*> w) { argv.insert(argv.end(), w); }
  int argc() const { return static_cast<int>(argv.size()); }
};
std::string refused(const words& w) {
  return error_of([&] { task t(w.argc(), w.argv.data()); });
}
}  // namespace

TEST_CASE("without a job a task is a single process") {
  words w{"--data=/some/where", "--single", "--steps", "7", "free"};
  task t(w.argc(), w.argv.data());
  CHECK(!t.distributed());
  CHECK(t.is_chief());
  CHECK(!t.is_ps());
  CHECK(t.device() == "/job:localhost/replica:0/task:0");
  CHECK(t.data_dir() == "/some/where");
  CHECK(t.flag("steps") == "7");
  CHECK(t.flag("nothing", "else") == "else");
  CHECK(t.args() == std::vector<std::string>{"--steps", "7", "free"});
  CHECK(error_of([&] { t.server(); }).starts_with("failed_precondition"));
}

TEST_CASE("flags of the program are numbers, too") {
  words w{"--steps=7",    "--rate",     "0.25",  "--far=99999999999",
          "--word=seven", "--half=7.5", "--last"};
  task t(w.argc(), w.argv.data());
  CHECK(t.flag("steps", 1) == 7);
  CHECK(t.flag("steps", 1.5) == 7);
  CHECK(t.flag("rate", 1.0) == 0.25);
  CHECK(t.flag("none", 3) == 3);
  CHECK(t.flag("far", std::int64_t{0}) == 99'999'999'999);
  CHECK(error_of([&] { t.flag("far", 0); }) ==
        "invalid_argument: --far=99999999999 is out of range: expected -2147483648 to 2147483647");
  CHECK(error_of([&] { t.flag("steps", std::uint8_t{0}), t.flag("word", 0); }) ==
        "invalid_argument: --word=seven is not an integer");
  CHECK(error_of([&] { t.flag("half", 0); }) == "invalid_argument: --half=7.5 is not an integer");
  CHECK(error_of([&] { t.flag("word", 0.0); }) == "invalid_argument: --word=seven is not a number");
  CHECK(error_of([&] { t.flag("last"); }) == "invalid_argument: --last needs a value");
}

TEST_CASE("flags of the program are true or false, and may be empty") {
  words w{"--a=true", "--b", "0", "--c=maybe", "--d=", "--e=off"};
  task t(w.argc(), w.argv.data(), {});
  CHECK(t.flag("a", false));
  CHECK(!t.flag("b", true));
  CHECK(!t.flag("e", true));
  CHECK(t.flag("none", true));
  CHECK(t.flag("d", "otherwise") == "");
  CHECK(error_of([&] { t.flag("c", true); }) ==
        "invalid_argument: --c=maybe is neither true nor false");
  words empty{"--data=", "--ck="};
  task e(empty.argc(), empty.argv.data(), {{"ck", "a folder"}});
  CHECK(e.flag("ck", "otherwise") == "");
  CHECK(e.unread().empty());
  CHECK(refused({"--task_index="}) ==
        "invalid_argument: the argument for option '--task_index' is invalid");
}

namespace {
/// Numbers with a comma, and points between thousands.
struct comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};
}  // namespace

TEST_CASE("flags are the same numbers under every locale") {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new comma));
  words w{"--gpu_memory_limit=0.5", "--rate=0.25"};
  CHECK_NOTHROW(CHECK(task(w.argc(), w.argv.data()).flag("rate", 1.0) == 0.25));
  CHECK(refused({"--gpu_memory_limit=0,5"}) ==
        "invalid_argument: the argument ('0,5') for option '--gpu_memory_limit' is invalid");
  CHECK(refused({"--restarts=1.000"}).find("--restarts") != std::string::npos);
  std::locale::global(before);
}

TEST_CASE("numbers out of range are refused, and so are clusters that cannot be") {
  CHECK(refused({"--intra_op_threads=-3"}) ==
        "invalid_argument: --intra_op_threads=-3: expected a number from 0 to 1024");
  CHECK(refused({"--intra_op_threads=5000"}) ==
        "invalid_argument: --intra_op_threads=5000: expected a number from 0 to 1024");
  CHECK(refused({"--restarts=-2"}) == "invalid_argument: --restarts=-2: expected a number from 0");
  CHECK(refused({"--cpu_devices=0"}) == "invalid_argument: --cpu_devices=0: expected at least 1");
  CHECK(refused({"--lost_worker_timeout=-1"}).find("expected a number from 0") !=
        std::string::npos);
  CHECK(refused({"--single=1"}) == "invalid_argument: --single takes no value: --single=1");
  const words none{};
  int started = 0;
  const auto starts = [&](const std::vector<std::pair<std::string, int>>& jobs) {
    return cluster_main(none.argc(), none.argv.data(), jobs, [&](task&) { ++started; });
  };
  CHECK(starts({}) == 1);
  CHECK(starts({{"worker", 0}}) == 1);
  CHECK(starts({{"worker", 1}, {"worker", 1}}) == 1);
  CHECK(starts({{"wor/ker", 1}}) == 1);
  CHECK(started == 0);
}

TEST_CASE("a job may have any name; its first task is the chief, and those of ps serve") {
  const words w{"--job_name=stage",          "--task_index=0", "--worker_hosts=b:1",
                "--stage_hosts=localhost:0", "--ps_hosts=c:1", "--own=1"};
  task t(w.argc(), w.argv.data());
  CHECK(t.job() == "stage");
  CHECK(!t.is_chief());
  CHECK(to_string(t.cluster().chief()) == "/job:worker/replica:0/task:0");
  CHECK(t.cluster().workers().size() == 2);
  CHECK(t.cluster().jobs()[0].first == "ps");
  CHECK(t.flag("own") == "1");
  session s(t);
  CHECK(s.run(constant(2.f) + 1.f) == 3);
  const words alone{"--stage_hosts=x"};  // a flag of the program
  CHECK(task(alone.argc(), alone.argv.data()).flag("stage_hosts") == "x");
  const words ps{"--job_name=ps", "--ps_hosts=localhost:0"};
  CHECK(!task(ps.argc(), ps.argv.data()).is_chief());
}

TEST_CASE("arguments that a program does not read are known") {
  words w{"--setps=3", "-steps=4", "--steps", "5", "extra"};
  task t(w.argc(), w.argv.data());
  CHECK(t.flag("steps", 0) == 5);
  CHECK(t.unread() == std::vector<std::string>{"--setps=3", "-steps=4", "extra"});
  CHECK(t.args().size() == 5);
  CHECK(t.unread().empty());
}

TEST_CASE("a warning names arguments that the program did not read") {
  testing::log_lines lines;
  words w{"--setps=3", "--steps=4"};
  CHECK(task_main(w.argc(), w.argv.data(), [](task& self) { self.flag("steps", 0); }) == 0);
  CHECK(join(lines.take(), "\n").find("the argument \"--setps=3\" was not read by the program") !=
        std::string::npos);
}

TEST_CASE("flags are taken as --name=value and as --name value") {
  SUBCASE("with =") {
    words w{"--job_name=worker",
            "--task_index=1",
            "--ps_hosts=b:1",
            "--worker_hosts=a:1,localhost:0",
            "--cpu_devices=2",
            "--log_device_placement",
            "--own=1"};
    task t(w.argc(), w.argv.data());
    CHECK(t.distributed());
    CHECK(t.job() == "worker");
    CHECK(t.index() == 1);
    CHECK(!t.is_chief());
    CHECK(t.log_device_placement());
    CHECK(t.device() == "/job:worker/replica:0/task:1");
    CHECK(t.cluster().tasks("ps") == 1);
    CHECK(t.flag("own") == "1");
    // The port that the system chose is known.
    CHECK(t.cluster().address("worker", 1) == t.server().address());
    CHECK(!t.server().address().ends_with(":0"));
  }
  SUBCASE("with a space") {
    words w{"--job_name",     "ps",  "--task_index", "0", "--ps_hosts", "localhost:0",
            "--worker_hosts", "a:1", "--own",        "2"};
    task t(w.argc(), w.argv.data());
    CHECK(t.is_ps());
    CHECK(t.flag("own") == "2");
  }
}

TEST_CASE("a program that names its flags refuses others, and suggests the one that was meant") {
  const std::vector<program_flag> own{{"steps", "how many"}, {"rate", "how fast"}};
  auto refuses = [&](const words& w) {
    return error_of([&] { task t(w.argc(), w.argv.data(), own); });
  };
  CHECK(refuses({"--steps=7", "--rate", "0.5", "--data=x"}) == "");
  CHECK(refuses({"--rate", "--steps", "free"}) == "");
  CHECK(refuses({"--stpes=7"}) ==
        "invalid_argument: \"--stpes=7\" is not a flag of this program; did you mean --steps?");
  CHECK(refuses({"--rate", "1", "--jobname=ps"}) ==
        "invalid_argument: \"--jobname=ps\" is not a flag of this program; did you mean "
        "--job_name?");
  CHECK(refuses({"--momentum=1"}) ==
        "invalid_argument: \"--momentum=1\" is not a flag of this program; --help lists its flags");
  CHECK(refuses({"-steps=4"}) ==
        "invalid_argument: \"-steps=4\" is not a flag of this program; did you mean --steps?");
  CHECK(refuses({"--rate"}) == "invalid_argument: --rate needs a value");

  words w{"--steps", "7", "free"};
  task t(w.argc(), w.argv.data(), own);
  CHECK(t.unread() == std::vector<std::string>{"free"});
  CHECK(t.flag("steps", 0) == 7);
  CHECK(t.flag("rate", 0.5) == 0.5);
  CHECK(error_of([&] { t.flag("stpes", 0); }) ==
        "invalid_argument: [flag] --stpes is not among the flags that the program named: add it to "
        "them, for --help");
}

TEST_CASE("a cluster is not started with a flag that the program does not have") {
  words w{"--stpes=7"};
  int started = 0;
  CHECK(cluster_main(w.argc(), w.argv.data(), {{"worker", 1}}, {{"steps", "how many"}},
                     [&](task&) { ++started; }) == 1);
  CHECK(started == 0);
}

TEST_CASE("a wrong flag is named") {
  CHECK(refused({"--job_name=chef", "--ps_hosts=a:1"}) ==
        "invalid_argument: --job_name=chef needs --chef_hosts");
  CHECK(refused({"--job_name="}).starts_with("invalid_argument: --job_name= needs the name"));
  CHECK(refused({"--job_name=ps", "--ps_hosts=a:1", "--ps_hosts=b:1"}) ==
        "invalid_argument: --ps_hosts is given twice");
  CHECK(refused({"--job_name=worker", "--ps_hosts=a:1"}) ==
        "invalid_argument: --job_name=worker needs --worker_hosts");
  CHECK(refused({"--job_name=ps", "--task_index=2", "--ps_hosts=a:1,b:1"}) ==
        "invalid_argument: --task_index=2: job ps has 2 tasks");
  CHECK(refused({"--task_index=x"}).find("task_index") != std::string::npos);
  CHECK(refused({"--cpu_devices=many"}).find("cpu_devices") != std::string::npos);
  CHECK(refused({"--ps_hosts=a:1"}) ==
        "invalid_argument: --ps_hosts and --worker_hosts need --job_name, ps or worker");
  CHECK(refused({"--job_name=ps", "--ps_hosts=a:1,,b:1"}) ==
        "invalid_argument: --ps_hosts=a:1,,b:1 contains an empty address");
  CHECK(refused({"--job_name=ps", "--ps_hosts=a"}).find("\"a\"") != std::string::npos);
  CHECK(refused({"--job_name=ps", "--ps_hosts=localhost:0", "--secret_file=/no/such/file"})
            .find("/no/such/file") != std::string::npos);
  CHECK(refused({"--job_name=ps", "--ps_hosts=localhost:0", "--secret_file=/etc/passwd"})
            .starts_with("permission_denied: users other than the owner have access to the secret "
                         "file \"/etc/passwd\" (mode 0644): run chmod 600 /etc/passwd"));
  CHECK(refused({"--job_name=ps", "--ps_hosts=localhost:0", "--listen_fd=12345"}).find("12345") !=
        std::string::npos);
}

TEST_CASE("--simulated_gpus gives a task GPUs, alone or in a cluster") {
  auto gpus_of = [](const words& w) {
    task t(w.argc(), w.argv.data());
    graph g;
    auto in = as_default(g);
    session s(t);
    std::vector<std::string> names;
    for (const auto& d : s.devices())
      if (d.name->type == "gpu") names.push_back(to_string(*d.name));
    return join(names, " ");
  };
  CHECK(gpus_of({"--simulated_gpus=1"}) == "/job:localhost/replica:0/task:0/gpu:0");
  CHECK(gpus_of({"--simulated_gpus", "0"}) == "");
  CHECK(gpus_of({"--job_name=worker", "--worker_hosts=localhost:0", "--simulated_gpus=2"}) ==
        "/job:worker/replica:0/task:0/gpu:0 /job:worker/replica:0/task:0/gpu:1");
}

TEST_CASE("a wrong number of simulated GPUs names the flag and the number") {
  for (const std::string given : {"many", "", "1.5"}) {
    const std::string flag = "--simulated_gpus=" + given, said = refused({flag.c_str()});
    INFO(said);
    CHECK(said.starts_with("invalid_argument: "));
    CHECK(said.find("simulated_gpus") != std::string::npos);
    CHECK(said.find(given) != std::string::npos);
  }
  for (const std::string given : {"-1", "65"}) {
    const std::string flag = "--simulated_gpus=" + given;
    const words w{"--job_name=ps", "--ps_hosts=localhost:0", flag.c_str()};
    CHECK(refused(w) ==
          str("invalid_argument: simulated_gpus is ", given, "; expected a number from 0 to 64"));
  }
}

TEST_CASE("task_main returns 1 for an error and 0 for --help") {
  words wrong{"--job_name=chef"}, help{"--help"}, fine{};
  auto body = [](task&) {};
  CHECK(task_main(wrong.argc(), wrong.argv.data(), body) == 1);
  CHECK(task_main(help.argc(), help.argv.data(), body) == 0);
  CHECK(task_main(fine.argc(), fine.argv.data(), body) == 0);
  CHECK(task_main(fine.argc(), fine.argv.data(), [](task&) { throw std::logic_error("x"); }) == 1);
}

TEST_CASE("task_main's function has a new graph, and a session on its task") {
  words w{"--cpu_devices=2"};
  auto outside = current_graph().size();
  float value = 0;
  std::size_t devices = 0;
  int code = task_main(w.argc(), w.argv.data(), [&](task& self) {
    tensor<float> a = constant(2.f);
    session s(self);
    value = s.run(a * 3.f);
    devices = s.devices().size();
  });
  CHECK(code == 0);
  CHECK(value == 6);
  CHECK(devices >= 2);
  CHECK(current_graph().size() == outside);
}
