// SPDX-License-Identifier: Apache-2.0
// benchmarks/peers.hpp: other libraries doing the same work, in programs that answer line by line.
#pragma once
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "bench.hpp"
#include "program.hpp"

namespace bench {

/// The folder of the peers' scripts: next to this program, if they were copied with it to another
/// machine, else in the checkout that it was built from.
inline std::string peers_folder() {
  std::error_code none;
  const auto carried =
      std::filesystem::read_symlink("/proc/self/exe", none).parent_path() / "peers";
  return std::filesystem::is_directory(carried, none) ? carried.string() : BENCH_PEERS;
}

class peer {
 public:
  peer(std::string name, std::vector<std::string> command)
      : name_(std::move(name)), asked_(std::make_shared<conversation>(std::move(command))) {}

  const std::string& name() const { return name_; }
  /// The next line that it prints without a question; empty if it has ended.
  std::string line() const { return asked_->process.line(); }
  /// Whether it has left a question unanswered.
  bool has_ended() const { return asked_->ended; }

  /// Turns of the work that the line `ask` names, in seconds; infinite if this peer does not have
  /// it, or has failed.
  measure turns(const std::string& ask) const {
    return [with = asked_, ask] {
      const std::string said = with->ended ? "" : with->process.ask(ask);
      if (said.empty()) with->ended = true;
      const double seconds = std::atof(said.c_str());
      return seconds > 0 ? seconds : std::numeric_limits<double>::infinity();
    };
  }

 private:
  struct conversation {
    explicit conversation(std::vector<std::string> command) : process(std::move(command)) {}
    program process;
    bool ended = false;
  };
  std::string name_;
  std::shared_ptr<conversation> asked_;
};

/// Measures deft and each of the peers in turns; returns the medians, deft's first. Everyone works
/// for a turn before the one that counts, as a peer's threads spin for milliseconds after an
/// answer.
inline std::vector<double> in_turns_with(const std::vector<peer>& peers, const std::string& ask,
                                         const measure& deft, int turns) {
  std::vector<measure> all{[&] { return deft(), deft(); }};
  for (const auto& p : peers) all.push_back(p.turns(ask));
  return in_turns(all, turns);
}

}  // namespace bench
