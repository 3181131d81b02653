// SPDX-License-Identifier: Apache-2.0
// tests/programs/checkpoints.cpp save FOLDER: goes on from the newest checkpoint and saves one
// after the other, of variables whose elements are the number of the step, until it is killed;
// prints a line for each. exchange FOLDER: writes deft.safetensors, and checks python.safetensors,
// for the package that does the reverse (tests/train/exchange.py).
#include <cstdio>
#include <deft/deft.hpp>

using namespace deft;

namespace {

int save_until_killed(const std::string& folder) {
  variable<float, 5000> a("a", zeros());
  variable<float, 3> b("b", zeros());
  auto step = global_step();
  const operation next = group(a.assign_add(1.f), b.assign_add(1.f), step.assign_add(1));
  session s;
  saver save({.max_to_keep = 2});
  if (const std::string newest = latest_checkpoint(folder); newest.empty())
    s.run(initialize_all());
  else
    save.restore(s, newest);
  for (;;) {
    s.run(next);
    save.save(s, folder + "/m", s.run(step));
    std::puts("saved");
    std::fflush(stdout);
  }
}

int exchange(const std::string& folder) {
  const std::map<std::string, any_array> arrays{
      {"layer/w", ndarray<float, 2, 3>{1, 2, 3, 4, 5, 6}.array()},
      {"count", any_array::scalar(std::int64_t{-7})},
      {"wide", ndarray<double, 2>{0.1, -0.5}.array()},
      {"flags", ndarray<bool, 3>{true, false, true}.array()},
      {"bytes", ndarray<std::uint8_t, 2>{0, 255}.array()},
      {"ids", ndarray<std::int32_t, 1, 2>{3, -3}.array()},
  };
  write_safetensors(folder + "/deft.safetensors", arrays);
  return read_safetensors(folder + "/python.safetensors") == arrays ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return argv[1] == std::string("save") ? save_until_killed(argv[2]) : exchange(argv[2]);
}
