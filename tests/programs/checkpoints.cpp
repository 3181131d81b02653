// SPDX-License-Identifier: Apache-2.0
// tests/programs/checkpoints.cpp save FOLDER: goes on from the newest checkpoint and saves one
// after the other, of variables whose elements are the number of the step, until it is killed;
// prints a line for each. exchange FOLDER: writes deft.safetensors and .npy files, and checks
// python.safetensors and such files, for the packages that do the reverse
// (tests/train/exchange.py). --folder FOLDER and the flags of a task: a parameter server holds 128
// MB, which its worker saves there and restores; prints a sum of what was restored, and by how many
// KB the worker has grown.
#include <cstdio>
#include <deft/deft.hpp>
#include <filesystem>
#include <fstream>

using namespace deft;
using namespace deft::ext;

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
  bool same = read_safetensors(folder + "/python.safetensors") == arrays;
  for (const auto& [name, a] : arrays) {
    const std::string file = std::filesystem::path(name).filename().string() + ".npy";
    write_npy(folder + "/deft_" + file, a);
    same = same && read_npy(folder + "/python_" + file) == a;
  }
  // Elements of 16 bits are read as float.
  write_safetensors(folder + "/widened.safetensors",
                    read_safetensors(folder + "/narrow.safetensors"));
  return same ? 0 : 1;
}

/// The most memory that the process has used, in KB.
long peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (long kb = 0; word == "VmHWM:" && status >> kb) return kb;
  return -1;
}

void save_what_the_ps_holds(task& self) {
  const std::string path = self.flag("folder") + "/m";
  auto scope = on(device("/job:ps/task:0"));
  variable<float, 10> tiny("tiny", zeros());
  std::vector<any_variable> large;
  for (int i = 0; i < 4; ++i) large.emplace_back(str("v", i), dims{8 << 20}, static_cast<float>(i));
  session s(self);
  s.run(initialize_all());
  saver first({.variables = {tiny}}), all;
  first.restore(s, first.save(s, path));  // what every first save needs
  any_tensor last = constant(0.f);
  for (const auto& v : large) last = last + reshape(gather(v, constant({(8 << 20) - 1})), dims{});
  s.run(last);
  std::vector<operation> changes;
  for (const auto& v : large) changes.push_back(v.assign_add(1.f));
  const operation change = group(changes);
  s.run(change);

  const long before = peak_memory();
  all.save(s, path, 1);
  s.run(change);
  all.restore(s, path + "-1");
  const long grown = peak_memory() - before;
  std::printf("%g %ld\n", static_cast<double>(*s.run(last).data<float>()), grown);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]).starts_with("--"))
    return task_main(argc, argv, save_what_the_ps_holds);
  if (argc != 3) return 2;
  return argv[1] == std::string("save") ? save_until_killed(argv[2]) : exchange(argv[2]);
}
