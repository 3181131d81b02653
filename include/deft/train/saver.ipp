// SPDX-License-Identifier: Apache-2.0
// deft/train/saver.ipp: the operations that save and restore, and the checkpoints of a directory.
#pragma once
#include <algorithm>
#include <chrono>
#include <deft/core/safetensors.hpp>
#include <deft/op/group.hpp>
#include <deft/op/placeholder.hpp>
#include <deft/op/save.hpp>
#include <deft/session/session_impl.hpp>
#include <deft/train/checkpoint_index.hpp>
#include <deft/train/saver.hpp>
#include <filesystem>
#include <set>

namespace deft {

/// The operation that saves these variables, of which each task writes its own.
struct saver::saving {
  std::map<std::string, output> variables;
  std::vector<std::string> tasks;  ///< their first processors
  placeholder<std::uint8_t, dyn> path{"save/path"};
  operation save;
};

namespace {

using named_variables = std::map<std::string, any_variable>;

/// The variables of each task, by the name of its first processor.
std::map<std::string, named_variables> by_processor(session& s, const named_variables& variables) {
  std::vector<output> reads;
  for (const auto& [name, v] : variables) reads.push_back(v.handle());
  const std::vector<placement> devices = s.impl().devices_of(reads);
  std::map<std::string, named_variables> all;
  std::size_t i = 0;
  for (const auto& [name, v] : variables) {
    device_name d = *devices[i++];
    d.type = "cpu";
    d.index = 0;
    all[to_string(d)].emplace(name, v);
  }
  return all;
}

std::vector<std::string> processors_of(const std::map<std::string, named_variables>& tasks) {
  std::vector<std::string> names;
  for (const auto& [processor, variables] : tasks) names.push_back(processor);
  return names;
}

/// ".ps-0.safetensors": with it end the names of the files that a task writes.
std::string file_suffix(const std::string& processor) {
  const device_name d = parse_device(processor);
  return str(".", d.job, "-", *d.task, ".safetensors");
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i)
    text += str(i ? ", " : "", "\"", names[i], "\"");
  if (names.size() > most) text += str(" and ", names.size() - most, " more");
  return text;
}

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < ' '; });
}

/// Adds the variables that were given to those that were named.
saver_options with_names(saver_options o) {
  for (const auto& v : o.variables)
    if (!o.named.emplace(v.name(), v).second)
      fail(errc::invalid_argument, "[saver] two variables have the name \"", v.name(), "\"");
  o.variables.clear();
  for (const auto& [name, v] : o.named)
    if (name.empty() || has_control_characters(name))
      fail(errc::invalid_argument, "[saver] \"", name,
           "\" cannot be the name of a tensor in a file");
  return o;
}

/// The graph of all of these, or the current one.
graph common_graph(const named_variables& variables) {
  if (variables.empty()) return current_graph();
  const graph g = graph::of(*variables.begin()->second.handle().node);
  for (const auto& [name, v] : variables)
    if (!(graph::of(*v.handle().node) == g))
      fail(errc::invalid_argument, "[saver] variable \"", v.name(),
           "\" is of another graph than \"", variables.begin()->second.name(), "\"");
  return g;
}

/// Deletes what `options` do not keep, of checkpoints in their order.
void delete_old(const std::vector<detail::checkpoint_index>& all, const saver_options& options) {
  if (options.max_to_keep <= 0) return;
  std::int64_t kept_period = -1;
  for (std::size_t i = 0; i + static_cast<std::size_t>(options.max_to_keep) < all.size(); ++i) {
    if (options.keep_every_hours > 0) {
      const auto period = static_cast<std::int64_t>(static_cast<double>(all[i].seconds) /
                                                    (options.keep_every_hours * 3600));
      if (period != std::exchange(kept_period, period)) continue;
    }
    detail::delete_checkpoint(all[i]);
  }
}

checkpoint_comparison compare_with(const detail::checkpoint_index& index,
                                   const named_variables& variables) {
  checkpoint_comparison c;
  for (const auto& [name, v] : variables) {
    const auto saved = index.tensors.find(name);
    if (saved == index.tensors.end()) {
      c.missing.push_back(name);
      continue;
    }
    const detail::saved_tensor& t = saved->second;
    if (t.holds.type == v.type() && fits(v.shape(), t.holds.shape))
      c.restorable.push_back(name);
    else
      c.mismatched.push_back(str("\"", name, "\" is ", tensor_type{v.shape(), v.type()}, ", and ",
                                 t.type.empty() ? to_string(t.holds) : t.type,
                                 " in the checkpoint"));
  }
  for (const auto& [name, t] : index.tensors)
    if (!variables.contains(name)) c.extra.push_back(name);
  return c;
}

[[noreturn]] void fail_comparison(const std::string& path, const checkpoint_comparison& c) {
  std::string text;
  for (const auto& m : c.mismatched) text += str(text.empty() ? "" : "; ", m);
  if (!c.missing.empty())
    text += str(text.empty() ? "" : "; ", "it does not have ", list_of(c.missing));
  if (!c.extra.empty()) text += str("; only it has ", list_of(c.extra));
  fail(c.mismatched.empty() ? errc::not_found : errc::invalid_argument, "[saver] ", path,
       " does not fit the variables: ", text);
}

}  // namespace

saver::saver(saver_options options) : options_(with_names(std::move(options))) {
  graph_ = common_graph(options_.named);
}

std::map<std::string, any_variable> saver::variables() const {
  if (!options_.named.empty()) return options_.named;
  named_variables all;
  for (const auto& v : graph_.variables()) {
    const any_variable found(v);
    all.emplace(found.name(), found);
  }
  if (all.empty()) fail(errc::failed_precondition, "[saver] the graph has no variables");
  return all;
}

void saver::prepare(session& s, const named_variables& all) {
  std::map<std::string, output> reads;
  for (const auto& [name, v] : all) reads.emplace(name, v.handle());
  const auto tasks = by_processor(s, all);
  if (saving_ && saving_->variables == reads && saving_->tasks == processors_of(tasks)) return;
  auto in_graph = as_default(graph_);
  scope outside{scope_ref()};
  auto next = std::make_shared<saving>();
  next->variables = std::move(reads);
  next->tasks = processors_of(tasks);
  std::vector<operation> saves;
  for (const auto& [processor, variables] : tasks) {
    auto on_task = on(device(processor));
    op::save_tensors o;
    o.suffix = file_suffix(processor);
    std::vector<output> in{next->path.handle()};
    for (const auto& [name, v] : variables) {
      o.names.push_back(name);
      in.push_back(v.handle());
    }
    saves.push_back(operation(detail::apply_any(o, in, here()).handle().node));
  }
  next->save = group(saves);
  saving_ = std::move(next);
}

std::string saver::save(session& s, const std::string& path, std::optional<std::int64_t> step,
                        source_place w) {
  const place_scope on_behalf(w);
  const named_variables all = variables();
  detail::checkpoint_index index;
  index.path = step ? str(path, "-", *step) : path;
  const auto [directory, base] = split_path(path);
  index.base = base;
  if (base.empty()) fail(errc::invalid_argument, "[saver] \"", path, "\" does not end with a name");
  if (index.path.ends_with(".safetensors") || has_control_characters(path))
    fail(errc::invalid_argument, "[saver] \"", index.path,
         "\" cannot be the name of a checkpoint: it is that of a single file, or has control "
         "characters");
  std::error_code e;
  std::filesystem::create_directories(directory, e);
  if (e) fail_system(e.value(), str("[saver] cannot make the directory \"", directory, "\""));
  std::vector<detail::checkpoint_index> there = detail::read_indexes(directory);
  if (!saving_) detail::delete_leftovers(directory, base, there);
  prepare(s, all);

  std::set<std::string> replaced;  // files
  for (const auto& i : there) {
    index.sequence = std::max(index.sequence, i.sequence + 1);
    if (i.name() != index.name()) continue;
    index.generation = i.generation + 1;
    for (auto& f : i.files()) replaced.insert(f);
  }
  const std::string files = str(index.path, ".", index.generation);
  // If this save fails, the next one begins anew, and deletes what it has left.
  const auto now = std::exchange(saving_, nullptr);
  s.run(now->save, now->path = bytes_of(absolute(files)), w);

  for (const auto& processor : now->tasks) {
    const std::string file = files + file_suffix(processor);
    try {
      const safetensors_file written(file);
      for (const auto& [name, t] : written.entries())
        index.tensors[name] = {split_path(file).second, name, {}, {t.shape, t.element}};
    } catch (const error& cause) {
      fail(cause.code(), cause.message(), "; ", processor,
           " wrote it: the directory must be one that all tasks share");
    }
  }
  index.seconds = std::chrono::duration_cast<std::chrono::seconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
  detail::write_index(index);
  saving_ = now;

  for (const auto& f : replaced) std::filesystem::remove(std::filesystem::path(directory) / f, e);
  std::erase_if(there,
                [&](const auto& i) { return i.name() == index.name() || i.base != index.base; });
  there.push_back(index);
  delete_old(there, options_);
  return index.path;
}

checkpoint_comparison saver::compare(const std::string& path) const {
  return compare_with(detail::read_index(path), variables());
}

checkpoint_comparison saver::restore(session& s, const std::string& path, restore_options options,
                                     source_place w) {
  const place_scope on_behalf(w);
  named_variables all = variables();
  const detail::checkpoint_index index = detail::read_index(path);
  checkpoint_comparison found = compare_with(index, all);
  if (!found.mismatched.empty() || (!found.missing.empty() && !options.partial))
    fail_comparison(path, found);
  for (const auto& name : found.missing) all.erase(name);
  if (all.empty()) return found;

  const std::string directory = absolute(split_path(path).first);
  std::string request;
  for (const auto& [name, v] : all) {
    const detail::saved_tensor& t = index.tensors.at(name);
    request +=
        str(name, "\n", (std::filesystem::path(directory) / t.file).string(), "\n", t.name, "\n");
  }
  auto in_graph = as_default(graph_);
  scope outside{scope_ref()};
  const placeholder<std::uint8_t, dyn> text("restore/request");
  std::vector<node_ref> reads;
  std::vector<std::pair<any_variable, any_tensor>> values;
  for (const auto& [processor, variables] : by_processor(s, all)) {
    auto on_task = on(device(processor));
    op::restore_tensors o;
    for (const auto& [name, v] : variables) {
      o.names.push_back(name);
      o.types.push_back(static_cast<std::int64_t>(v.type()));
      o.types.push_back(v.rank());
      o.types.insert(o.types.end(), v.shape().begin(), v.shape().end());
    }
    const output in[] = {text.handle()};
    const node_ref read = detail::apply_any(o, in, here()).handle().node;
    reads.push_back(read);
    std::uint32_t number = 0;
    for (const auto& [name, v] : variables)
      values.emplace_back(v, any_tensor(output{read, number++}));
  }
  // Nothing is assigned before every task has read all of its files.
  const control_scope after(std::move(reads));
  std::vector<operation> assigns;
  for (const auto& [v, value] : values) assigns.push_back(v.assign(value));
  s.run(group(assigns), text = bytes_of(request), w);
  return found;
}

std::vector<std::string> checkpoints_in(const std::string& directory, const std::string& name) {
  std::vector<std::string> paths;
  for (const auto& i : detail::read_indexes(directory))
    if (name.empty() || i.base == name) paths.push_back(i.path);
  return paths;
}

std::string latest_checkpoint(const std::string& directory, const std::string& name) {
  const auto all = checkpoints_in(directory, name);
  if (!all.empty()) return all.back();
  detail::folder_without() = directory;
  return {};
}

}  // namespace deft
