// SPDX-License-Identifier: Apache-2.0
// deft/train/checkpoint_index.ipp: indexes as JSON with a checksum, and the files of a directory.
#pragma once
#include <algorithm>
#include <cctype>
#include <deft/core/crc32c.hpp>
#include <deft/core/failure.hpp>
#include <deft/core/file.hpp>
#include <deft/core/json.ipp>
#include <deft/core/log.hpp>
#include <deft/core/printable.hpp>
#include <deft/core/safetensors.hpp>
#include <deft/train/checkpoint_index.hpp>
#include <filesystem>
#include <set>
#include <utility>

namespace deft::detail {
namespace {

namespace json = boost::json;

constexpr std::string_view index_ending = ".index.json", file_ending = ".safetensors",
                           model_index_ending = ".safetensors.index.json";
constexpr std::size_t longest_index = std::size_t{1} << 28;

/// The text before the index itself, up to the checksum of what follows.
constexpr std::string_view opening = "{\"crc32c\":", before_index = ",\"index\":";

[[noreturn]] void bad_index(const std::string& file, std::string_view what) {
  fail(errc::data_loss, "[saver] ", file, ": ", what);
}

std::string text_in(const json::value& v) {
  const json::string& text = v.as_string();
  return {text.data(), text.size()};
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isdigit(static_cast<unsigned char>(c));
  });
}

/// Splits at the last `c`; the second part is empty if there is none.
std::pair<std::string_view, std::string_view> split_last(std::string_view text, char c) {
  const auto at = text.rfind(c);
  return at == text.npos ? std::pair(text, std::string_view())
                         : std::pair(text.substr(0, at), text.substr(at + 1));
}

/// Whether a checkpoint of this name is one of `base`: "base" or "base-step".
bool is_of_base(std::string_view name, const std::string& base) {
  if (name == base) return true;
  if (!name.starts_with(base) || name.substr(base.size(), 1) != "-") return false;
  name.remove_prefix(base.size() + 1);
  if (name.starts_with('-')) name.remove_prefix(1);
  return is_number(name);
}

/// Whether it is the generation in a file's name. That of a file whose checkpoint does not have its
/// name yet is followed by a random number: "1-1234".
bool is_generation(std::string_view text) {
  const auto dash = text.find('-');
  return is_number(text.substr(0, dash)) && (dash == text.npos || is_number(text.substr(dash + 1)));
}

/// The checkpoint whose file has this name, as tasks name them:
/// checkpoint.generation.job-index.safetensors. Empty for another file.
std::string_view checkpoint_of(std::string_view file) {
  if (!file.ends_with(file_ending) || file.find('/') != file.npos) return {};
  file.remove_suffix(file_ending.size());
  const auto [rest, task] = split_last(file, '.');
  const auto [checkpoint, generation] = split_last(rest, '.');
  const auto [job, index] = split_last(task, '-');
  return is_generation(generation) && !job.empty() && is_number(index) ? checkpoint
                                                                       : std::string_view();
}

/// Refuses what may lead out of the directory of the index, or to files of others: checkpoints are
/// copied from elsewhere, and what they name is deleted with them.
void check_own(const checkpoint_index& index, const std::string& file) {
  const std::string name = index.name();
  if (!is_possible_name(index.base) || index.base.find('/') != index.base.npos ||
      !is_of_base(name, index.base))
    bad_index(file,
              str("it is the index of \"", printable(index.base), "\", not of \"", name, "\""));
  for (const auto& [tensor, t] : index.tensors)
    if (!is_possible_name(t.file) || checkpoint_of(t.file) != name)
      bad_index(file, str("its file \"", printable(t.file), "\" is not one of this checkpoint"));
}

std::int64_t count_of(const json::value& v) {
  constexpr std::int64_t most = std::int64_t{1} << 62;  // there is a next one
  const std::int64_t n = v.as_int64();
  if (n < 0 || n > most) fail(errc::data_loss, "a number is not valid");
  return n;
}

saved_tensor entry_of(std::string_view name, const json::value& v) {
  saved_tensor t;
  t.file = text_in(v.at("file"));
  t.name = name;
  t.holds.type = dtype_of_number(v.at("dtype").as_int64());
  if (t.holds.type == dtype::none) fail(errc::data_loss, "a dtype is not known");
  const json::array& shape = v.at("shape").as_array();
  if (shape.size() > max_rank) fail(errc::data_loss, "a shape has too many extents");
  for (const auto& e : shape) t.holds.shape.push_back(e.as_int64());
  if (!is_sound(t.holds.shape) || t.holds.shape.contains(dyn))
    fail(errc::data_loss, "a shape is not valid");
  return t;
}

checkpoint_index parse_index(const std::string& path, const std::string& file,
                             const std::string& text) {
  const auto middle = text.find(before_index);
  if (!text.starts_with(opening) || middle == text.npos || !text.ends_with("}\n"))
    bad_index(file, "it is not the index of a checkpoint");
  const auto begin = middle + before_index.size();
  const std::string_view inner(text.data() + begin, text.size() - begin - 2);
  if (text.substr(opening.size(), middle - opening.size()) != std::to_string(crc32c(inner)))
    bad_index(file, "its checksum is wrong");
  checkpoint_index index;
  try {
    const json::value parsed = parse_json(inner, "the index");
    const json::object& o = parsed.as_object();
    index.path = path;
    index.base = text_in(o.at("base"));
    index.sequence = count_of(o.at("sequence"));
    index.seconds = o.at("seconds").as_int64();
    index.generation = count_of(o.at("generation"));
    if (const json::value* v = o.if_contains("draws"))
      index.draws = static_cast<std::uint64_t>(count_of(*v));
    for (const auto& [name, v] : o.at("tensors").as_object())
      index.tensors.emplace(name, entry_of({name.data(), name.size()}, v));
  } catch (const error& e) {
    bad_index(file, e.message());
  } catch (const std::exception&) {  // of Boost.JSON
    bad_index(file, "the index lacks an entry, or has one of another type");
  }
  check_own(index, file);
  return index;
}

/// Of a file, or of a model in several.
checkpoint_index index_of_model(const std::string& path) {
  const safetensors_model model(path, file_roots::anywhere(), file_access::copied);
  checkpoint_index index;
  index.path = index.origin = path;
  for (const auto& name : model.names()) {
    const safetensors_entry& e = model.entry(name);
    index.origin = model.file_of(name);
    index.tensors.emplace(
        name,
        saved_tensor{split_path(index.origin).second, name, e.unsupported, {e.shape, e.element}});
  }
  return index;
}

void remove_file(const std::filesystem::path& file) {
  std::error_code e;
  std::filesystem::remove(file, e);
  if (e) logging::warning("[saver] cannot delete ", file.string(), ": ", e.message());
}

}  // namespace

bool is_possible_name(std::string_view name) {
  return !name.empty() && is_utf8(name) &&
         std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < ' '; });
}

std::string checkpoint_index::name() const { return split_path(path).second; }
std::vector<std::string> checkpoint_index::files() const {
  std::set<std::string> all;
  for (const auto& [name, t] : tensors) all.insert(t.file);
  return {all.begin(), all.end()};
}

std::string& folder_without() {
  thread_local std::string folder;
  return folder;
}

checkpoint_index read_index(const std::string& path) {
  if (path.empty())
    fail(errc::not_found,
         "[saver] there is no checkpoint \"\": latest_checkpoint gives this name if its folder has "
         "none",
         folder_without().empty() ? "" : str(", as \"", folder_without(), "\" had"));
  const std::string file = str(path, index_ending);
  std::error_code e;
  if (path.ends_with(file_ending) || path.ends_with(model_index_ending) ||
      (std::filesystem::is_directory(path, e) && !std::filesystem::exists(file, e)))
    return index_of_model(path);
  if (!std::filesystem::exists(file, e))
    fail(errc::not_found, "[saver] there is no checkpoint \"", path, "\"",
         std::filesystem::is_regular_file(path, e)
             ? str(": the file of that name has no index \"", file,
                   "\"; read_npy and read_safetensors read files of other kinds")
             : std::string());
  std::string real = file;
  if (std::filesystem::is_symlink(file, e)) real = std::filesystem::canonical(file, e).string();
  if (!real.ends_with(index_ending)) bad_index(file, "it leads to a file that is not an index");
  real.resize(real.size() - index_ending.size());
  checkpoint_index index =
      parse_index(real, file, read_file(file_roots::anywhere(), file, longest_index));
  index.origin = std::exchange(index.path, path);
  return index;
}

std::int64_t saved_step(const checkpoint_index& index) {
  const auto step = index.tensors.find("global_step");
  if (step == index.tensors.end() || step->second.holds.type != dtype::int64 ||
      step->second.holds.shape.rank() != 0)
    return 0;
  const auto file = std::filesystem::path(split_path(index.origin).first) / step->second.file;
  return safetensors_file(file.string()).read(step->second.name).item<std::int64_t>();
}

std::string why_incomplete(const checkpoint_index& index) {
  const std::filesystem::path directory = split_path(index.origin).first;
  try {
    for (const auto& f : index.files()) {
      const safetensors_file file((directory / f).string());
      for (const auto& [name, t] : index.tensors)
        if (t.file == f && !file.entries().contains(t.name))
          return str((directory / f).string(), " lacks \"", printable(name), "\"");
    }
    return {};
  } catch (const error& e) {
    return e.message();
  }
}

index_writer::index_writer(const std::string& path)
    // The files are next to `path`, and not where a link leads.
    : file_(file_roots::anywhere(), str(path, index_ending), true) {}

void index_writer::write(const checkpoint_index& index) {
  json::object tensors;
  for (const auto& [name, t] : index.tensors)
    tensors[name] = {{"file", t.file},
                     {"dtype", static_cast<std::int64_t>(t.holds.type)},
                     {"shape", json::array(t.holds.shape.begin(), t.holds.shape.end())}};
  json::object inner = {{"base", index.base},
                        {"sequence", index.sequence},
                        {"seconds", index.seconds},
                        {"generation", index.generation}};
  if (index.draws) inner["draws"] = static_cast<std::int64_t>(*index.draws);
  inner["tensors"] = std::move(tensors);
  const std::string text = json::serialize(inner);
  const std::string whole = str(opening, crc32c(text), before_index, text, "}\n");
  file_.write(0, whole.data(), whole.size());
  file_.commit();
}

std::vector<checkpoint_index> read_indexes(const std::string& directory) {
  std::vector<checkpoint_index> all;
  std::error_code e;
  const std::filesystem::directory_iterator entries(directory.empty() ? "." : directory, e);
  if (e && e != std::errc::no_such_file_or_directory)
    fail_system(e.value(), str("[saver] cannot read the directory \"", directory, "\""));
  for (const auto& entry : entries) {
    const std::string file = entry.path().string();
    if (!file.ends_with(index_ending)) continue;
    const std::string path = file.substr(0, file.size() - index_ending.size());
    if (path.ends_with(file_ending)) continue;  // of a model in several files, by others
    try {
      checkpoint_index index = read_index(path);
      // A link of another name is not a checkpoint of its own, whose files could be deleted.
      if (split_path(index.origin).second == index.name()) all.push_back(std::move(index));
    } catch (const error& damaged) {
      if (damaged.code() != errc::not_found) logging::warning(damaged.message());
    }
  }
  std::ranges::sort(all, {}, &checkpoint_index::sequence);
  return all;
}

void delete_checkpoint(const checkpoint_index& index) {
  const std::filesystem::path directory = split_path(index.path).first;
  if (is_being_written(directory, str(index.name(), index_ending))) return;
  remove_file(str(index.path, index_ending));
  for (const auto& f : index.files()) remove_file(directory / f);
}

namespace {

/// Whether the index of the checkpoint `path`, which may be newer than one that was read before,
/// names the file.
bool is_file_of(const std::string& path, const std::string& name) {
  bool is = false;
  const auto failed =
      failure_of([&] { is = std::ranges::count(read_index(path).files(), name) > 0; });
  return is || (failed && failed->code() != errc::not_found);
}

}  // namespace

void delete_leftovers(const std::string& directory, const std::string& base,
                      const std::vector<checkpoint_index>& there) {
  std::set<std::string> used, readable;
  for (const auto& i : there) {
    readable.insert(i.name());
    for (auto& f : i.files()) used.insert(f);
  }
  std::error_code e;
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(directory, e)) {
    if (entry.is_directory(e)) continue;
    const std::string name = entry.path().filename().string();
    if (completed_name(name) != name && completed_name(name).ends_with(index_ending)) {
      left.push_back(name);
      continue;
    }
    const std::string checkpoint(checkpoint_of(completed_name(name)));
    // The index of a save that another process has begun is being written until its end.
    if (!is_of_base(checkpoint, base) || used.contains(name) ||
        is_being_written(directory, str(checkpoint, index_ending)))
      continue;
    // The files of an index that is damaged may still be wanted.
    const std::string path = (entry.path().parent_path() / checkpoint).string();
    if ((readable.contains(checkpoint) && !is_file_of(path, name)) ||
        !std::filesystem::exists(str(path, index_ending)))
      left.push_back(name);
  }
  for (const auto& name : left)
    if (completed_name(name) != name)
      delete_leftover(directory, name);
    else
      remove_file(std::filesystem::path(directory) / name);
}

}  // namespace deft::detail
