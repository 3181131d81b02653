// SPDX-License-Identifier: Apache-2.0
// Clusters whose connections all use TLS.
#include <sys/stat.h>

#include <deft/session/launch/local_cluster.hpp>

#include "certificates.hpp"
#include "environment.hpp"
#include "session/processes.hpp"
#include "session/sessions.hpp"

using namespace deft;
using namespace deft::ext;
using testing::certificate_authority;
using testing::child_job;
using testing::child_program;
using testing::environment;
using testing::outcome_of;
using testing::own_graph;

namespace {

const certificate_authority& authority() {
  static const certificate_authority a;
  return a;
}
const credentials& of_tasks() {
  static const auto c =
      authority().issue("tasks", {"deft:/job:ps/task:*", "deft:/job:worker/task:*"});
  return c;
}
const credentials& of_client() {
  static const auto c = authority().issue("client", {"deft:/client"});
  return c;
}
std::vector<std::string> flags_of(const credentials& c) {
  return {"--tls_cert=" + c.certificate, "--tls_key=" + c.key, "--tls_ca=" + c.authority};
}

/// Sets the credentials in the environment while it lives.
struct with_files {
  environment certificate, key, authority;
  /// Empty paths count as not given.
  explicit with_files(const credentials& c)
      : certificate("DEFT_TLS_CERT", c.certificate.c_str()),
        key("DEFT_TLS_KEY", c.key.c_str()),
        authority("DEFT_TLS_CA", c.authority.c_str()) {}
};

}  // namespace

TEST_CASE_FIXTURE(own_graph,
                  "steps on a cluster with TLS have their values, and large ones come whole") {
  local_cluster c({{"ps", 1}, {"worker", 2}}, {.credentials = of_tasks()});
  auto v = on(device("/job:ps/task:0"), [] { return variable<float, 2'000'000>("v", 3.f); });
  auto far = on(device("/job:worker/task:1"), [&] { return tensor<float, 2'000'000>(v + v); });
  session s(c.target("worker", 0), {.credentials = of_client()});
  s.run(initialize_all());
  for (int i = 0; i < 5; ++i) {
    const auto x = s.run(far);
    CHECK(x(0) == 6.f);
    CHECK(x(1'999'999) == 6.f);
  }
  placeholder<float, dyn> p("p");
  auto sum_of = on(device("/job:worker/task:1"), [&] { return tensor<float>(sum(p)); });
  CHECK(s.run(sum_of, p = std::vector<float>(1'000'000, 1.f)) == 1'000'000.f);
}

TEST_CASE_FIXTURE(own_graph, "each task has its own certificate, which says which task it is") {
  const auto of_task = [](const std::string& job, int task) {
    return authority().issue(str(job, task), {str("deft:/job:", job, "/task:", task)});
  };
  int sockets[] = {listen_socket("localhost:0"), listen_socket("localhost:0")};
  const cluster_spec spec{{"ps", {address_of_socket(sockets[0])}},
                          {"worker", {address_of_socket(sockets[1])}}};
  server ps(spec, "ps", 0, {.listen_fd = sockets[0], .credentials = of_task("ps", 0)});
  server worker(spec, "worker", 0, {.listen_fd = sockets[1], .credentials = of_task("worker", 0)});
  auto v = on(device("/job:ps/task:0"), [] { return variable<float>("v", 3.f); });
  auto far = on(device("/job:worker/task:0"), [&] { return tensor<float>(v * 2.f); });
  {
    session s(worker.target(), {.credentials = of_client()});
    s.run(initialize_all());
    CHECK(s.run(far) == 6);
  }
  SUBCASE("a server does not start with the certificate of another task") {
    const auto o = outcome_of([&] {
      server(cluster_spec{{"ps", {"localhost:0"}}}, "ps", 0, {.credentials = of_task("worker", 0)});
    });
    CAPTURE(o);
    CHECK(o.code == errc::invalid_argument);
    CHECK(o.says("worker0.crt\" is for deft:/job:worker/task:0, not for /job:ps/replica:0/task:0"));
  }
  auto refused = [&](const credentials& c) {
    const testing::log_lines of_servers;
    const with_files given(c);
    child_program p("remote_client", {worker.target(), "sum"});
    const auto said = p.line();
    CHECK(p.wait() == 1);
    return said;
  };
  SUBCASE("nor does a session with the certificate of a task") {
    const auto said = refused(of_task("ps", 0));
    CAPTURE(said);
    CHECK(said.find("ps0.crt\" is for deft:/job:ps/task:0, not for client") != said.npos);
  }
  SUBCASE("a client of another authority is refused") {
    const certificate_authority other;
    auto foreign = other.issue("client", {"deft:/client"});
    foreign.authority = of_client().authority;
    const auto said = refused(foreign);
    CAPTURE(said);
    CHECK(said.starts_with("unauthenticated|"));
    CHECK(said.find(str(": it does not accept the certificate \"", foreign.certificate,
                        "\": unknown CA")) != said.npos);
  }
  SUBCASE("a client without a certificate is told what it needs") {
    const auto said = refused({});
    CAPTURE(said);
    CHECK(said.find("the caller does not use TLS: set --tls_cert, --tls_key and --tls_ca") !=
          said.npos);
  }
}

TEST_CASE_FIXTURE(own_graph, "another task at the address of a task is not taken for that task") {
  struct : connection_handler {
    void on_message(const std::shared_ptr<connection>&, message&&) override {}
  } silent;
  int sockets[] = {listen_socket("localhost:0"), listen_socket("localhost:0")};
  const cluster_spec spec{{"ps", {address_of_socket(sockets[0])}},
                          {"worker", {address_of_socket(sockets[1])}}};
  listen_options o;
  o.fd = sockets[0];
  o.self = {"/job:ps/replica:0/task:1", 0, spec.entries(), of_tasks()};
  const listener other(o, silent);
  server worker(spec, "worker", 0, {.listen_fd = sockets[1], .credentials = of_tasks()});
  auto x = on(device("/job:ps/task:0"), [] { return tensor<int>(identity(constant(3))); });
  session s(worker.target());
  const auto failed = outcome_of([&] { s.run(x); });
  CAPTURE(failed);
  CHECK(failed.code == errc::failed_precondition);
  CHECK(failed.says(
      str("/job:ps/replica:0/task:0: ", spec.address("ps", 0), " is /job:ps/replica:0/task:1")));
}

TEST_CASE("a job of processes trains on TLS, from flags that a launcher hands on or of each task") {
  auto trains = [](const std::vector<std::string>& lines) {
    return std::ranges::any_of(lines, [](const auto& l) { return l.find("w is 3.000") != l.npos; });
  };
  auto flags = flags_of(of_tasks());
  flags.push_back("--steps=10000");
  SUBCASE("of a launcher") {
    child_program all("line_fit", flags);
    CHECK(trains(all.lines()));
    CHECK(all.wait() == 0);
  }
  SUBCASE("of each task") {
    child_job job("line_fit", 1, flags_of(of_tasks()), 2, flags);
    CHECK(trains(job.worker(0).lines()));
    for (int i : {0, 1}) CHECK(job.worker(i).wait() == 0);
    CHECK(job.ps(0).wait() == 0);
  }
}

TEST_CASE("a client in another process takes its files from the environment") {
  local_cluster c({{"ps", 1}, {"worker", 2}}, {.credentials = of_tasks()});
  const with_files given(of_client());
  graph g;
  auto in = as_default(g);
  auto v = on(device("/job:ps/task:0"), [] { return variable<float>("shared", 40.f); });
  session s(c.target("worker", 0));
  s.run(initialize_all());
  child_program p("remote_client", {c.target("worker", 0), "sum"});
  CHECK(p.line().starts_with("4 42 42 on "));
  CHECK(p.wait() == 0);
}

TEST_CASE("a task whose key is readable by others does not start") {
  const auto open = authority().issue("open", {"deft:/job:ps/task:0"});
  REQUIRE(::chmod(open.key.c_str(), 0644) == 0);
  auto flags = flags_of(open);
  flags.insert(flags.end(), {"--job_name=ps", "--ps_hosts=localhost:0"});
  child_program p("line_fit", flags);
  CHECK(p.complaint().ends_with(str("users other than the owner have access to the key \"",
                                    open.key, "\" (mode 0644): run chmod 600 ", open.key)));
  CHECK(p.wait() == 1);
}

TEST_CASE_FIXTURE(own_graph, "scripts/make_certificates makes what tasks and clients need") {
  const testing::temporary_folder folder;
  const auto script = std::string(DEFT_TEST_SCRIPTS "/make_certificates");
  const auto in = [&](const std::string& name) { return std::string(folder / name); };
  const std::string made = in("made");
  child_program first(script, {made, "ps/0", "tasks=worker/*,ps/1", "client"});
  CHECK(first.lines() ==
        std::vector<std::string>{made + "/authority.crt: the authority",
                                 made + "/ps-0.crt: deft:/job:ps/task:0",
                                 made + "/tasks.crt: deft:/job:worker/task:*,deft:/job:ps/task:1",
                                 made + "/client.crt: deft:/client"});
  CHECK(first.complaints() == "");
  CHECK(first.wait() == 0);
  for (const char* name : {"authority", "ps-0", "tasks", "client"}) {
    struct stat about {};
    REQUIRE(::stat(str(made, "/", name, ".key").c_str(), &about) == 0);
    CHECK((about.st_mode & 0777) == 0600);
  }
  const auto kept = testing::read_bytes(made + "/authority.crt");
  child_program second(script, {made, "worker/1"});
  CHECK(second.lines() ==
        std::vector<std::string>{made + "/worker-1.crt: deft:/job:worker/task:1"});
  CHECK(second.wait() == 0);
  CHECK(testing::read_bytes(made + "/authority.crt") == kept);

  auto of = [&](const std::string& name) {
    return credentials{.certificate = made + "/" + name + ".crt",
                       .key = made + "/" + name + ".key",
                       .authority = made + "/authority.crt"};
  };
  int sockets[] = {listen_socket("localhost:0"), listen_socket("localhost:0")};
  const cluster_spec spec{{"ps", {address_of_socket(sockets[0])}},
                          {"worker", {address_of_socket(sockets[1])}}};
  server ps(spec, "ps", 0, {.listen_fd = sockets[0], .credentials = of("ps-0")});
  server worker(spec, "worker", 0, {.listen_fd = sockets[1], .credentials = of("tasks")});
  auto x = on(device("/job:ps/task:0"), [] { return tensor<int>(identity(constant(3))); });
  session s(worker.target(), {.credentials = of("client")});
  CHECK(s.run(x) == 3);

  for (const std::vector<std::string>& wrong : {std::vector<std::string>{},
                                                {in("x")},
                                                {in("x"), "ps 0"},
                                                {in("x"), "ps/0,"},
                                                {in("x"), "../y=ps/0"}}) {
    child_program refused(script, wrong);
    CHECK(refused.complaint() != "");
    CHECK(refused.wait() == 2);
    CHECK(!std::filesystem::exists(in("x")));
  }
}
