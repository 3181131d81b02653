// SPDX-License-Identifier: Apache-2.0
// deft/session/master/master_plan.ipp: registers the parts of a plan on their tasks.
#pragma once
#include <deft/core/failure.hpp>
#include <deft/core/thread.hpp>
#include <deft/graph/function.hpp>
#include <deft/op/plan/feed.hpp>
#include <deft/op/plan/recv.hpp>
#include <deft/op/plan/send.hpp>
#include <deft/plan/order.hpp>
#include <deft/session/master/master_plan.hpp>
#include <deft/session/wire/codec.hpp>
#include <deft/session/wire/values.hpp>
#include <map>
#include <set>

namespace deft::ext {

master_plan::master_plan(std::shared_ptr<task_directory> tasks, std::vector<plan::part> parts,
                         std::size_t fetches)
    : tasks_(std::move(tasks)), closing_(tasks_->closing()), fetches_(fetches) {
  for (auto& part : parts) {
    task_part r;
    r.task = part.task;
    r.fetches = part.fetch_numbers;
    for (const auto& n : part.graph.nodes) {
      r.updates |= plan::has_update(n);
      waits_ |= is(n, op_traits::waits);
      draws_ |= plan::draws(n);
      if (n.op->role == op_role::feed) {
        const auto number = decode<op::feed>(n.attributes).index;
        r.feeds.push_back(static_cast<std::uint32_t>(number));
        feeds_ = std::max(feeds_, static_cast<std::size_t>(number) + 1);
      }
    }
    r.registration.session = tasks_->session();
    r.registration.handle = tasks_->next_handle();
    r.registration.part = std::move(part);
    r.registration.part.stream = *tasks_->options().stream;
    if (r.task == tasks_->self_name()) {
      own_part_ = std::move(r);
    } else {
      check_fetches(r.fetches.size());
      check_feeds(r.feeds.size());
      others_.push_back(std::move(r));
    }
  }
  if (!others_.empty()) return;
  own_ = std::make_shared<frame_pool>(std::move(own_part_.registration.part),
                                      tasks_->self().resources(tasks_->session()));
  for (std::size_t i = 0; i < own_part_.feeds.size(); ++i)
    feeds_in_order_ &= own_part_.feeds[i] == i;
}

/// The tasks that the part with these nodes exchanges values with.
inline std::set<std::string> peers_of(const graph_def& g) {
  std::set<std::string> peers;
  for (const auto& n : g.nodes)
    if (n.op->role == op_role::send)
      peers.insert(decode<op::send>(n.attributes).peer);
    else if (n.op->role == op_role::receive)
      peers.insert(decode<op::recv>(n.attributes).peer);
  return peers;
}

void master_plan::register_parts(deadline until, failure_callback then) {
  std::vector<placement> others;
  for (const auto& r : others_) others.push_back(r.task);
  tasks_->when_linked(others, until,
                      [self = shared_from_this(), until, then = std::move(then)](
                          const std::vector<std::shared_ptr<channel>>& links,
                          std::shared_ptr<const error> failure) {
                        std::vector<task_directory::task_call> unconfirmed;
                        if (!failure)
                          failure =
                              failure_of([&] { unconfirmed = self->register_parts_by(links); });
                        auto end = [self, then](const std::shared_ptr<const error>& why) {
                          if (why)
                            for (const auto& r : self->others_)
                              self->tasks_->doubt_registration(r.task);
                          then(why);
                        };
                        if (failure) return end(failure);
                        self->tasks_->when_answered(std::move(unconfirmed), until, std::move(end));
                      });
}

/// Returns the registrations that have to be confirmed; they are not sent yet.
std::vector<task_directory::task_call> master_plan::register_parts_by(
    const std::vector<std::shared_ptr<channel>>& links) {
  std::map<std::string, std::uint64_t> incarnations;
  for (std::size_t i = 0; i < others_.size(); ++i) {
    others_[i].link = links[i];
    incarnations.emplace(to_string(*others_[i].task), links[i]->peer().incarnation);
  }
  const auto fill_in = [&](wire::register_part& r) {
    for (auto& peer : peers_of(r.part.graph))
      if (const auto at = incarnations.find(peer); at != incarnations.end())
        r.incarnations.push_back(*at);
  };
  if (own_part_.task) {
    incarnations.emplace(to_string(*own_part_.task), tasks_->self().incarnation());
    auto& own = own_part_.registration;
    fill_in(own);
    tasks_->cluster()->register_part(own.session, own.handle, std::move(own.part), own.incarnations,
                                     nullptr);
  }
  std::vector<task_directory::task_call> unconfirmed;
  for (std::size_t i = 0; i < others_.size(); ++i) {
    auto& r = others_[i];
    fill_in(r.registration);
    each_node(r.registration.part.graph,
              [&](const node_def& n) { check_knows(links[i]->peer(), n); });
    // A task drops the values that others send it for a session whose connection was lost, until it
    // hears of the session again.
    auto m = wire::pack(r.registration);
    if (tasks_->note_registration(r.task, links[i]))
      unconfirmed.push_back({links[i], std::move(m)});
    else
      links[i]->post(m);
  }
  return unconfirmed;
}

master_plan::~master_plan() {
  if (others_.empty() || tasks_->closed() || is_forked()) return;
  if (own_part_.task)
    tasks_->cluster()->drop_part(tasks_->session(), own_part_.registration.handle);
  for (auto& r : others_) try {
      if (const auto link = r.link.lock(); link && !link->lost())
        link->post(wire::pack(wire::drop_part{tasks_->session(), r.registration.handle}));
    } catch (const std::exception&) {
      // A lost task has dropped it; without memory it stays until the session ends.
    }
}

std::shared_ptr<channel> master_plan::standing_link(const task_part& r) {
  std::lock_guard lock(guard_);
  auto link = r.link.lock();
  return link && !link->lost() ? std::move(link) : nullptr;
}

/// Connects to the task of part `r` again, and registers the part. Calls `then` once the task has
/// confirmed that: until then it drops the values that others send it. If two runs register the
/// part, the second time has no effect.
void master_plan::relink(task_part& r, deadline until, link_callback then) {
  struct registration final : answer_listener {
    std::shared_ptr<master_plan> plan;
    task_part& part;
    std::shared_ptr<channel> link;
    link_callback then;
    registration(std::shared_ptr<master_plan> p, task_part& r, std::shared_ptr<channel> c,
                 link_callback t)
        : plan(std::move(p)), part(r), link(std::move(c)), then(std::move(t)) {}
    void answered(pending& p) override {
      auto failure = failure_of([&] { p.get(); });
      if (!failure) {
        std::lock_guard lock(plan->guard_);
        part.link = link;
      }
      then(link, std::move(failure));
    }
  };
  tasks_->when_linked(r.task, until,
                      [self = shared_from_this(), &r, then = std::move(then)](
                          std::shared_ptr<channel> c, std::shared_ptr<const error> failure) {
                        if (!failure)
                          failure = failure_of([&] {
                            c->call(wire::pack(r.registration),
                                    std::make_shared<registration>(self, r, c, then));
                          });
                        if (failure) then(nullptr, std::move(failure));
                      });
}

deadline master_plan::deadline_of(const run_options& options) const {
  const auto timeout = options.timeout.count() ? options.timeout : tasks_->options().timeout;
  return timeout.count() ? deadline_in(timeout) : no_deadline;
}

}  // namespace deft::ext
