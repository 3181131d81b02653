// SPDX-License-Identifier: Apache-2.0
// deft/train/saver.ipp: the operations that save and restore, and the checkpoints of a directory.
#pragma once
#include <algorithm>
#include <chrono>
#include <deft/core/log.hpp>
#include <deft/core/printable.hpp>
#include <deft/core/safetensors.hpp>
#include <deft/op/group.hpp>
#include <deft/op/placeholder.hpp>
#include <deft/op/save.hpp>
#include <deft/session/session_impl.hpp>
#include <deft/train/checkpoint_index.hpp>
#include <deft/train/round_nodes.ipp>
#include <deft/train/saver_names.ipp>
#include <deft/transport/handshake.hpp>
#include <filesystem>

namespace deft {

/// The operation that saves these variables, of which each task writes its own.
struct saver::saving {
  std::map<std::string, ext::output> variables;
  std::vector<std::string> tasks;  ///< their first processors
  placeholder<std::string> path{"save/path"};
  operation save;
  std::vector<operation> resumes;  ///< rounds of synchronous training, after a failure
};

namespace {

/// The variables of each task, by the name of its first processor.
std::map<std::string, named_variables> by_processor(session& s, const named_variables& variables) {
  std::vector<ext::output> reads;
  for (const auto& [name, v] : variables) reads.push_back(v.handle());
  const std::vector<ext::placement> devices = s.impl().devices_of(reads);
  std::map<std::string, named_variables> all;
  std::size_t i = 0;
  for (const auto& [name, v] : variables) {
    all[to_string(ext::host_of(*devices[i++]))].emplace(name, v);
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
  return ext::str(".", d.job, "-", *d.task, ".safetensors");
}

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

std::int64_t integer_in(const safetensors_file& file, const std::string& name) {
  const any_array value = file.read(name);
  return value.type() == dtype::int32 ? value.item<std::int32_t>() : value.item<std::int64_t>();
}

/// Lets rounds go on after a save that failed. Tries again where a task is slow, until it would
/// count as lost: the session and its pauses end there with the connection, too.
void resume_after(const error& failure, session& s, const operation& resume) {
  using namespace std::chrono_literals;
  const bool lost = failure.code() == errc::unavailable || failure.code() == errc::aborted;
  for (auto timeout = 1s; timeout < 100s; timeout *= 4) try {
      s.run(run_options{.timeout = timeout}, resume);
      return;
    } catch (const error& e) {
      if (e.code() == errc::deadline_exceeded && !lost) continue;
      if (!lost && e.code() != errc::unavailable && e.code() != errc::cancelled)
        logging::warning("[saver] rounds may stand still after a save that failed: ", e.what());
      return;
    }
  logging::warning("[saver] rounds may stand still after a save that failed: no answer");
}

/// The checkpoint of that name, unless it is a link to another one, or damaged.
std::optional<detail::checkpoint_index> present(const std::string& path) {
  try {
    detail::checkpoint_index index = detail::read_index(path);
    if (ext::split_path(index.origin).second == index.name()) return index;
  } catch (const error&) {
  }
  return {};
}

std::int64_t next_generation(const std::string& path) {
  const auto now = present(path);
  return now ? now->generation + 1 : 1;
}

/// Lets the files of a checkpoint have the names that begin with `to`, too. Returns false, and
/// gives them none, if a file has one of these: of two savers only one can make a link.
bool link_files(const std::string& files, const std::string& to,
                const std::vector<std::string>& tasks) {
  std::vector<std::string> made;
  for (const auto& processor : tasks) {
    const std::string suffix = file_suffix(processor), name = to + suffix;
    std::error_code e, ignored;
    std::filesystem::create_hard_link(files + suffix, name, e);
    if (!e) {
      made.push_back(name);
    } else if (std::filesystem::exists(std::filesystem::symlink_status(name, ignored))) {
      for (const auto& m : made) std::filesystem::remove(m, ignored);
      return false;
    }  // else some file systems have no links
  }
  return true;
}

/// Renames the files of a checkpoint from `files` to its name and the next generation that no file
/// has. Returns what their names begin with.
std::string rename_files(const std::string& files, detail::checkpoint_index& index,
                         const std::vector<std::string>& tasks) {
  std::string to;
  for (index.generation = next_generation(index.path);; ++index.generation) {
    to = ext::str(index.path, ".", index.generation);
    if (link_files(files, to, tasks)) break;
  }
  std::error_code e;
  for (const auto& processor : tasks) {
    const std::string from = files + file_suffix(processor), name = to + file_suffix(processor);
    std::filesystem::rename(from, name, e);
    if (e) ext::fail_system(e.value(), ext::str("[saver] cannot rename ", from));
    // Of two links to one file, rename leaves both.
    std::filesystem::remove(from, e);
  }
  return to;
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

op::snapshot_variables snapshot_of(const named_variables& variables) {
  op::snapshot_variables o;
  for (const auto& [name, v] : variables) {
    const auto state = ext::decode<op::variable>(v.handle().node->attributes);
    o.containers.push_back(state.container);
    o.variables.push_back(state.variable_name);
    o.types.push_back({state.shape, state.type});
  }
  return o;
}

}  // namespace

void saver::prepare(session& s, const named_variables& all) {
  std::map<std::string, ext::output> reads;
  for (const auto& [name, v] : all) reads.emplace(name, v.handle());
  const auto tasks = by_processor(s, all);
  if (saving_ && saving_->variables == reads && saving_->tasks == processors_of(tasks)) return;
  auto in_graph = as_default(graph_);
  ext::scope outside{ext::scope_ref()};
  auto next = std::make_shared<saving>();
  next->variables = std::move(reads);
  next->tasks = processors_of(tasks);
  std::vector<ext::node_ref> snapshots;
  {
    const ext::control_scope after(at_rounds<op::pause_rounds>(graph_));
    for (const auto& [processor, variables] : tasks) {
      auto on_task = on(device(processor));
      snapshots.push_back(detail::apply_any(snapshot_of(variables), {}, ext::here()).handle().node);
    }
  }
  std::vector<operation> saves;
  auto snapshot = snapshots.begin();
  for (const auto& [processor, variables] : tasks) {
    auto on_task = on(device(processor));
    op::save_tensors o;
    o.suffix = file_suffix(processor);
    std::vector<ext::output> in{next->path.handle()};
    for (const auto& [name, v] : variables) {
      const any_tensor value(ext::output{*snapshot, static_cast<std::uint32_t>(o.names.size())});
      o.names.push_back(name);
      in.push_back(to_file(value, axes_in_file(name)).handle());
    }
    ++snapshot;
    saves.push_back(operation(detail::apply_any(o, in, ext::here()).handle().node));
  }
  {
    const ext::control_scope after(snapshots);
    for (const ext::node_ref& n : at_rounds<op::resume_rounds>(graph_))
      saves.push_back(operation(n));
  }
  next->save = group(saves);
  for (const ext::node_ref& n : at_rounds<op::resume_rounds>(graph_))
    next->resumes.push_back(operation(n));
  saving_ = std::move(next);
}

std::string saver::save(session& s, const std::string& path, std::optional<std::int64_t> step,
                        ext::source_location w) {
  const ext::location_scope on_behalf(w);
  return save_as(s, path, step, nullptr, w);
}

std::string saver::save_counted(session& s, const std::string& path, const any_variable& step,
                                ext::source_location w) {
  const ext::location_scope on_behalf(w);
  const named_variables all = variables();
  const auto counted =
      std::ranges::find_if(all, [&](const auto& v) { return v.second.handle() == step.handle(); });
  if (counted == all.end() || !ext::is_integer(step.type()) || step.rank() != 0)
    ext::fail(errc::invalid_argument, "[saver] \"", step.name(), "\", ",
              ext::tensor_type{step.shape(), step.type()},
              ", cannot be the step of a checkpoint: it is not an integer that is saved");
  return save_as(s, path, {}, &counted->first, w);
}

std::string saver::save_as(session& s, const std::string& path, std::optional<std::int64_t> step,
                           const std::string* counted, ext::source_location w) {
  const named_variables all = variables();
  detail::checkpoint_index index;
  index.path = step ? ext::str(path, "-", *step) : path;
  const auto [directory, base] = ext::split_path(path);
  index.base = base;
  if (base.empty())
    ext::fail(errc::invalid_argument, "[saver] \"", path, "\" does not end with a name");
  if (index.path.ends_with(".safetensors") || !detail::is_possible_name(base) ||
      std::ranges::count(path, '\n') > 0)
    ext::fail(errc::invalid_argument, "[saver] \"", ext::printable(index.path),
              "\" cannot be the name of a checkpoint: it is that of a single file, has control "
              "characters, or is not UTF-8");
  std::error_code e;
  std::filesystem::create_directories(directory, e);
  if (e)
    ext::fail_system(e.value(), ext::str("[saver] cannot make the directory \"", directory, "\""));
  std::vector<detail::checkpoint_index> there = detail::read_indexes(directory);
  if (!saving_) detail::delete_leftovers(directory, base, there);
  prepare(s, all);
  auto writer = std::make_unique<detail::index_writer>(index.path);

  for (const auto& i : there) index.sequence = std::max(index.sequence, i.sequence + 1);
  // Until all are written, and the step is known, the files have names that no other save has:
  // another program may save the same step meanwhile.
  const std::string files =
      ext::str(index.path, ".", next_generation(index.path), "-", ext::random_incarnation());
  // If this save fails, the next one begins anew, and deletes what it has left.
  const auto now = std::exchange(saving_, nullptr);
  try {
    s.run(now->save, now->path = absolute(files), w);
  } catch (const error& why) {
    for (const operation& resume : now->resumes) resume_after(why, s, resume);
    throw;
  }
  index.draws = s.impl().on().draws();

  std::optional<std::int64_t> held;  // the step in the checkpoint
  for (const auto& processor : now->tasks) {
    const std::string file = files + file_suffix(processor);
    try {
      const safetensors_file written(file);
      for (const auto& [name, t] : written.entries())
        index.tensors[name] = {ext::split_path(file).second, name, {}, {t.shape, t.element}};
      if (counted && written.entries().contains(*counted)) held = integer_in(written, *counted);
    } catch (const error& cause) {
      ext::fail(cause.code(), cause.message(), "; ", processor,
                " wrote it: the directory must be one that all tasks share");
    }
  }
  std::unique_ptr<detail::index_writer> before;
  if (counted) {
    index.path = ext::str(path, "-", held.value());
    // Files of either name are no leftovers before all have the new one.
    before = std::exchange(writer, std::make_unique<detail::index_writer>(index.path));
  }
  const std::string named = rename_files(files, index, now->tasks);
  before.reset();
  const std::size_t old = ext::split_path(files).second.size();
  for (auto& [name, t] : index.tensors) t.file = ext::split_path(named).second + t.file.substr(old);
  index.seconds = std::chrono::duration_cast<std::chrono::seconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
  const auto replaced = present(index.path);
  writer->write(index);
  saving_ = now;

  if (replaced)
    for (const auto& f : replaced->files())
      std::filesystem::remove(std::filesystem::path(directory) / f, e);
  keep_newest(std::move(there), index);
  return index.path;
}

void saver::keep_newest(std::vector<detail::checkpoint_index> there,
                        const detail::checkpoint_index& made) {
  const std::string path = absolute(made.path);
  std::erase(made_, path);
  // Those of this saver are the newest, in their order, whatever their directories.
  std::erase_if(there, [&](const auto& i) {
    const std::string other = absolute(i.path);
    return i.base != made.base || other == path || std::ranges::count(made_, other) > 0;
  });
  std::erase_if(made_, [&](const std::string& other) {
    try {
      there.push_back(detail::read_index(other));
      return false;
    } catch (const error&) {
      return true;  // somebody has deleted it
    }
  });
  there.push_back(made);
  made_.push_back(path);
  delete_old(there, options_);
}

namespace {

/// Lets synchronous training go on after an update that may have been made in part, as the values
/// of all variables are known again.
void end_torn_rounds(session& s, const graph& g, ext::source_location w) {
  const ext::scope outside(ext::push_controls{nullptr});
  std::vector<any_tensor> generations;
  for (const auto& n : at_rounds<op::rounds_generation>(g))
    generations.emplace_back(ext::output{n, 0});
  if (generations.empty()) return;
  const auto now = s.run(generations, w);
  if (std::ranges::any_of(now, [](const any_array& n) { return n.item<std::int64_t>() == 0; }))
    s.run(detail::make_group(at_rounds<op::restart_rounds>(g), w), w);
}

}  // namespace

checkpoint_comparison saver::restore(session& s, const std::string& path, restore_options options,
                                     ext::source_location w) {
  const ext::location_scope on_behalf(w);
  named_variables all = variables();
  const detail::checkpoint_index index = detail::read_index(path);
  checkpoint_comparison found = compare_with(index, all);
  if (!found.mismatched.empty() || (!found.missing.empty() && !options.partial))
    fail_comparison(path, found);
  for (const auto& name : found.missing) all.erase(name);
  if (all.empty()) return found;

  const std::string directory = absolute(ext::split_path(index.origin).first);
  auto in_graph = as_default(graph_);
  ext::scope outside{ext::scope_ref()};
  std::vector<ext::node_ref> reads;
  std::vector<std::pair<any_variable, any_tensor>> values;
  for (const auto& [processor, variables] : by_processor(s, all)) {
    auto on_task = on(device(processor));
    op::restore_tensors o;
    std::vector<std::string> files, names;
    for (const auto& [name, v] : variables) {
      const detail::saved_tensor& t = index.tensors.at(name);
      files.push_back((std::filesystem::path(directory) / t.file).string());
      names.push_back(t.name);
      o.names.push_back(name);
      o.types.push_back({in_file(v.shape(), axes_in_file(name)), t.holds.type});
    }
    const ext::output in[] = {constant(files).handle(), constant(names).handle()};
    const ext::node_ref read = detail::apply_any(o, in, ext::here()).handle().node;
    reads.push_back(read);
    std::uint32_t number = 0;
    for (const auto& [name, v] : variables) {
      const any_tensor value = cast(any_tensor(ext::output{read, number++}), v.type());
      const dims order = axes_in_file(name);
      values.emplace_back(v, order.rank() ? transpose(value, axes(order)) : value);
    }
  }
  // Nothing is assigned before every task has read all of its files.
  const ext::control_scope after(std::move(reads));
  std::vector<operation> assigns;
  for (const auto& [v, value] : values) assigns.push_back(v.assign(value));
  s.run(group(assigns), w);
  end_torn_rounds(s, graph_, w);
  return found;
}

std::map<std::string, any_array> saver::arrays(session& s, ext::source_location w) const {
  const ext::location_scope on_behalf(w);
  const named_variables all = variables();
  auto in_graph = as_default(graph_);
  const ext::scope outside{ext::scope_ref()};
  std::vector<any_tensor> values;
  for (const auto& [name, v] : all)
    values.push_back(to_file(any_tensor(v.handle()), axes_in_file(name)));
  std::vector<any_array> fetched = s.run(values, w);
  std::map<std::string, any_array> arrays;
  auto value = fetched.begin();
  for (const auto& [name, v] : all) arrays.emplace(name, std::move(*value++));
  return arrays;
}

namespace {

/// Those of a directory in their order, without those that cannot be restored.
std::vector<detail::checkpoint_index> whole_checkpoints(const std::string& directory,
                                                        const std::string& name) {
  auto all = detail::read_indexes(directory);
  std::erase_if(all, [&](const auto& i) {
    if (!name.empty() && i.base != name) return true;
    const std::string why = detail::why_incomplete(i);
    if (!why.empty()) logging::warning("[saver] checkpoint ", i.path, " is passed over: ", why);
    return !why.empty();
  });
  return all;
}

}  // namespace

std::vector<std::string> checkpoints_in(const std::string& directory, const std::string& name) {
  std::vector<std::string> paths;
  for (const auto& i : whole_checkpoints(directory, name)) paths.push_back(i.path);
  return paths;
}

std::string latest_checkpoint(const std::string& directory, const std::string& name) {
  const auto all = checkpoints_in(directory, name);
  if (!all.empty()) return all.back();
  detail::folder_without() = directory;
  return {};
}

}  // namespace deft
