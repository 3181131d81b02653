// SPDX-License-Identifier: Apache-2.0
// tests/namespaces/network.hpp: machines on a network of their own, as far as sockets can tell.
#pragma once
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <boost/process.hpp>
#include <cerrno>
#include <cstring>
#include <deft/core/text.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "testing.hpp"

namespace testing {

/// Runs ip (package iproute2). What it complains of; empty if it has done it.
inline std::string run_ip(const std::string& arguments) {
  namespace bp = boost::process;
  bp::ipstream complaints;
  bp::child shell("/bin/sh", bp::args({"-c", "PATH=$PATH:/usr/sbin:/sbin ip " + arguments}),
                  bp::std_out > bp::null, bp::std_err > complaints);
  std::string said = deft::ext::str("ip ", arguments, ":");
  for (std::string line; std::getline(complaints, line);) said += " " + line;
  shell.wait();
  return shell.exit_code() == 0 ? "" : said;
}

/// Puts this process into namespaces of its own, before its first thread is started. Why that
/// cannot be; empty if it is.
inline std::string enter_own_network() {
  const auto user = ::geteuid();
  const auto group = ::getegid();
  auto write = [](const char* file, const std::string& text) { std::ofstream(file) << text; };
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) == 0) {
    write("/proc/self/setgroups", "deny");
    write("/proc/self/uid_map", deft::ext::str("0 ", user, " 1"));
    write("/proc/self/gid_map", deft::ext::str("0 ", group, " 1"));
  } else if (::unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) {
    return deft::ext::str("no network namespace can be made: ", std::strerror(errno));
  }
  for (const char* kind : {"bridge", "veth"}) {
    auto failed = run_ip(deft::ext::str("link add probe type ", kind));
    if (failed.empty()) failed = run_ip("link delete probe");
    if (!failed.empty()) return failed;
  }
  return "";
}

/// Replaces /etc/hosts, for this process and its children only. Needs enter_own_network.
class own_hosts {
 public:
  explicit own_hosts(const std::string& lines) {
    const int fd = ::mkstemp(path_);
    REQUIRE(fd >= 0);
    ::close(fd);
    std::ofstream(path_) << lines;
    REQUIRE(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
    REQUIRE(::mount(path_, "/etc/hosts", nullptr, MS_BIND, nullptr) == 0);
  }
  ~own_hosts() {
    ::umount("/etc/hosts");
    ::unlink(path_);
  }
  own_hosts(const own_hosts&) = delete;

 private:
  char path_[32] = "/tmp/deft_hosts_XXXXXX";
};

/// Machines 10.77.0.1, 10.77.0.2, … joined by a bridge. Each is a network namespace.
class network {
 public:
  explicit network(int machines) : switch_(own_namespace()) {
    ip("link add bridge type bridge");
    ip("link set bridge up");
    for (int m = 0; m < machines; ++m) {
      REQUIRE(::unshare(CLONE_NEWNET) == 0);
      machines_.push_back(own_namespace());
      // Its other end is the bridge's. ip finds the namespace among this process's descriptors.
      ip(deft::ext::str("link add eth0 type veth peer name ", port(m), " netns /proc/", ::getpid(),
                        "/fd/", switch_));
      ip(deft::ext::str("address add ", host(m), "/24 dev eth0"));
      ip("link set lo up");
      ip("link set eth0 up");
      enter(switch_);
      ip(deft::ext::str("link set ", port(m), " master bridge up"));
    }
  }
  ~network() {
    for (int m = 0; m < static_cast<int>(machines_.size()); ++m) {
      run_ip("link delete " + port(m));
      ::close(machines_[static_cast<std::size_t>(m)]);
    }
    run_ip("link delete bridge");
    ::close(switch_);
  }
  network(const network&) = delete;

  static std::string host(int machine) { return deft::ext::str("10.77.0.", machine + 1); }
  /// Calls `f` on that machine: processes and sockets that it makes belong there, threads do, too.
  template <class F>
  auto on(int machine, F f) const {
    struct stay {
      int back;
      ~stay() { ::setns(back, CLONE_NEWNET); }
    } ends{switch_};
    enter(machines_[static_cast<std::size_t>(machine)]);
    return f();
  }
  /// Packets from that machine to the address are dropped, though it is on the same network.
  void drop(int machine, const std::string& address) const {
    on(machine, [&] {
      ip(deft::ext::str("neighbour add ", address,
                        " lladdr 02:00:00:00:00:03 dev eth0 nud permanent"));
    });
  }
  /// From here on nothing reaches the machine or leaves it, and no peer gets an error.
  void cut_off(int machine) const { ip(deft::ext::str("link set ", port(machine), " down")); }

 private:
  static std::string port(int machine) { return deft::ext::str("port", machine); }
  static int own_namespace() {
    const int fd = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    return fd;
  }
  static void enter(int fd) { REQUIRE(::setns(fd, CLONE_NEWNET) == 0); }
  static void ip(const std::string& arguments) { REQUIRE(run_ip(arguments) == ""); }

  int switch_;
  std::vector<int> machines_;
};

}  // namespace testing
