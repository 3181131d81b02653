// SPDX-License-Identifier: Apache-2.0
// deft/train/checkpoint_index.ipp: indexes as JSON with a checksum, and the files of a directory.
#pragma once
#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <deft/core/crc32c.hpp>
#include <deft/core/file.hpp>
#include <deft/core/log.hpp>
#include <deft/core/safetensors.hpp>
#include <deft/train/checkpoint_index.hpp>
#include <filesystem>
#include <set>

namespace deft::detail {
namespace {

namespace json = boost::json;

constexpr std::string_view index_ending = ".index.json", file_ending = ".safetensors";
constexpr std::size_t longest_index = std::size_t{1} << 28;

/// The text before the index itself, up to the checksum of what follows.
constexpr std::string_view opening = "{\"crc32c\":", before_index = ",\"index\":";

[[noreturn]] void bad_index(const std::string& file, std::string_view what) {
  fail(errc::data_loss, "[saver] ", file, ": ", what);
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
  try {
    const json::value parsed = json::parse(inner);
    checkpoint_index index;
    index.path = path;
    index.base = parsed.at("base").as_string().c_str();
    index.sequence = parsed.at("sequence").as_int64();
    index.seconds = parsed.at("seconds").as_int64();
    index.generation = parsed.at("generation").as_int64();
    for (const auto& [name, v] : parsed.at("tensors").as_object()) {
      saved_tensor t;
      t.file = v.at("file").as_string().c_str();
      t.name = name;
      const auto type = v.at("dtype").as_int64();
      if (type <= 0 || type >= dtype_count) bad_index(file, "a dtype is not known");
      t.holds.type = static_cast<dtype>(type);
      for (const auto& e : v.at("shape").as_array()) t.holds.shape.push_back(e.as_int64());
      index.tensors.emplace(name, std::move(t));
    }
    return index;
  } catch (const boost::system::system_error& e) {
    bad_index(file, e.what());
  }
}

checkpoint_index index_of_file(const std::string& path) {
  const safetensors_file file(path);
  checkpoint_index index;
  index.path = path;
  for (const auto& [name, e] : file.entries())
    index.tensors.emplace(name, saved_tensor{split_path(path).second,
                                             name,
                                             e.element == dtype::none ? e.type : std::string(),
                                             {e.shape, e.element}});
  return index;
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

/// The checkpoint "base[-step]" whose file has this name, as tasks name them:
/// base[-step].generation.job-index.safetensors, or that with .tmp. Empty for another file.
std::string checkpoint_of(std::string_view file, const std::string& base) {
  if (file.ends_with(".tmp")) file.remove_suffix(4);
  if (!file.ends_with(file_ending)) return {};
  file.remove_suffix(file_ending.size());
  const auto [rest, task] = split_last(file, '.');
  const auto [checkpoint, generation] = split_last(rest, '.');
  const auto [job, index] = split_last(task, '-');
  if (!is_number(generation) || job.empty() || !is_number(index)) return {};
  const auto [name, step] = split_last(checkpoint, '-');
  const bool is_of_base = checkpoint == base || (name == base && is_number(step));
  return is_of_base ? std::string(checkpoint) : std::string();
}

void remove_file(const std::filesystem::path& file) {
  std::error_code e;
  std::filesystem::remove(file, e);
  if (e) logging::warning("[saver] cannot delete ", file.string(), ": ", e.message());
}

}  // namespace

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
  if (path.ends_with(file_ending)) return index_of_file(path);
  const std::string file = str(path, index_ending);
  std::error_code e;
  if (!std::filesystem::exists(file, e))
    fail(errc::not_found, "[saver] there is no checkpoint \"", path, "\"");
  return parse_index(path, file, read_file(file_roots::anywhere(), file, longest_index));
}

std::int64_t saved_step(const std::string& path) {
  const checkpoint_index index = read_index(path);
  const auto step = index.tensors.find("global_step");
  if (step == index.tensors.end() || step->second.holds.type != dtype::int64) return 0;
  const auto file = std::filesystem::path(split_path(path).first) / step->second.file;
  return safetensors_file(file.string()).read(step->second.name).item<std::int64_t>();
}

void write_index(const checkpoint_index& index) {
  json::object tensors;
  for (const auto& [name, t] : index.tensors)
    tensors[name] = {{"file", t.file},
                     {"dtype", static_cast<std::int64_t>(t.holds.type)},
                     {"shape", json::array(t.holds.shape.begin(), t.holds.shape.end())}};
  const json::value inner = {{"base", index.base},
                             {"sequence", index.sequence},
                             {"seconds", index.seconds},
                             {"generation", index.generation},
                             {"tensors", std::move(tensors)}};
  const std::string text = json::serialize(inner);
  write_file(file_roots::anywhere(), str(index.path, index_ending),
             str(opening, crc32c(text), before_index, text, "}\n"));
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
    try {
      all.push_back(read_index(file.substr(0, file.size() - index_ending.size())));
    } catch (const error& damaged) {
      if (damaged.code() != errc::not_found) logging::warning(damaged.message());
    }
  }
  std::ranges::sort(all, {}, &checkpoint_index::sequence);
  return all;
}

void delete_checkpoint(const checkpoint_index& index) {
  remove_file(str(index.path, index_ending));
  const std::filesystem::path directory = split_path(index.path).first;
  for (const auto& f : index.files()) remove_file(directory / f);
}

void delete_leftovers(const std::string& directory, const std::string& base,
                      const std::vector<checkpoint_index>& there) {
  std::set<std::string> used, readable;
  for (const auto& i : there) {
    readable.insert(i.name());
    for (auto& f : i.files()) used.insert(f);
  }
  std::error_code e;
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(directory, e)) {
    const std::string name = entry.path().filename().string();
    const std::string checkpoint = checkpoint_of(name, base);
    if (checkpoint.empty() || used.contains(name)) continue;
    // The files of an index that is damaged may still be wanted.
    if (readable.contains(checkpoint) ||
        !std::filesystem::exists(entry.path().parent_path() / str(checkpoint, index_ending)))
      left.push_back(entry.path());
  }
  for (const auto& f : left) remove_file(f);
}

}  // namespace deft::detail
