// SPDX-License-Identifier: Apache-2.0
// deft/execute/frame_values.hpp: the values of a frame: their elements and shapes.
#pragma once
#include <atomic>
#include <cstring>
#include <deft/execute/schedule.hpp>
#include <mutex>

namespace deft::ext::exec {

inline std::size_t bytes_of(dtype type, const dims& shape) {
  return std::max<std::size_t>(static_cast<std::size_t>(shape.elements()) * size_of_dtype(type), 1);
}

/// Concurrent lanes use different values.
class frame_values {
 public:
  explicit frame_values(const executable::compiled& c)
      : c_(c),
        values_(c.values.size()),
        shapes_(c.shapes),
        owned_(c.owned),
        arenas_(c.spaces.size()) {
    for (const auto& [v, elements] : c.constants) {
      values_[v].keep = elements;
      values_[v].data = elements.data();
    }
    for (std::size_t s = 0; s < arenas_.size(); ++s) {
      arenas_[s].slot_bytes.resize(c.spaces[s].slots);
      if (const auto bytes = c.spaces[s].block_bytes) arenas_[s].staging = buffer::host(bytes);
    }
  }

  const void* address(std::uint32_t v) const { return values_[v].data; }
  const dims& shape_of(std::uint32_t v) const {
    const value_info& i = c_.values[v];
    return i.shape == none ? c_.type(i).shape : shapes_[i.shape];
  }
  tensor_type type_of(std::uint32_t v) const { return {shape_of(v), c_.type(c_.values[v]).type}; }
  void set_shape(std::uint32_t v, const dims& shape) {
    const value_info& i = c_.values[v];
    if (i.shape == none || shapes_[i.shape] == shape) return;
    shapes_[i.shape] = shape;
    dirty_.store(true, std::memory_order_relaxed);
  }
  /// Sets the shape of an output, inferred from its inputs.
  void infer_shape(std::uint32_t v, const dims& shape) {
    if (c_.values[v].shape != none) shapes_[c_.values[v].shape] = shape;
  }
  /// Whether a shape differs from the last run's.
  bool dirty() const { return dirty_.load(std::memory_order_relaxed); }
  void set_dirty(bool d) { dirty_.store(d, std::memory_order_relaxed); }

  void hold(std::uint32_t v, any_array a) {
    set_shape(v, a.shape());
    values_[v].keep = std::move(a).take_storage();
    values_[v].data = values_[v].keep.data();
  }

  /// The value with the owner of its elements, if there is one.
  any_array as_array(std::uint32_t v) const {
    const value_info& r = c_.values[c_.values[v].root];
    const dtype type = c_.type(c_.values[v]).type;
    if (r.where == storage::buffer) return any_array(type, shape_of(v), owned_[r.offset]);
    if (values_[v].keep) return any_array(type, shape_of(v), values_[v].keep);
    return any_array::view(type, shape_of(v), values_[v].data);
  }

  void hold(std::uint32_t v, const feed_ref& f) {
    set_shape(v, f.shape);
    values_[v].keep = f.keep;
    values_[v].data = const_cast<void*>(f.data);
  }
  /// The value, and the owner of its elements if there is one. Allocates nothing.
  feed_ref as_ref(std::uint32_t v) const {
    const value_info& r = c_.values[c_.values[v].root];
    return {values_[v].data, shape_of(v), c_.type(c_.values[v]).type,
            r.where == storage::buffer ? owned_[r.offset] : values_[v].keep};
  }

  /// Whether nothing but this value refers to its elements, which were made in this run.
  bool is_only_holder(std::uint32_t v) const { return values_[v].keep.unique(); }

  /// Makes `to` an alias of the elements of `from`.
  void share(std::uint32_t to, std::uint32_t from) { values_[to] = values_[from]; }
  void drop(std::uint32_t v) { values_[v].keep.reset(); }
  /// The same, but passes the owner of the elements to the caller.
  buffer take(std::uint32_t v) { return std::move(values_[v].keep); }
  /// Releases shared memory.
  void release() {
    for (auto v : c_.holders) values_[v].keep.reset();
    for (auto& b : owned_)
      if (b && !b.unique()) b.reset();
  }

  /// Throws invalid_argument if the value is not of the declared type; takes its shape.
  void check_feed(std::uint32_t number, const feed_ref& f) {
    const value_info& info = c_.values[number];
    const tensor_type& declared = c_.type(info);
    if (f.type != declared.type || !fits(declared.shape, f.shape)) {
      const node_label& n = c_.labels[info.node];
      throw error(errc::invalid_argument,
                  str("[feed] ", f.type, f.shape, " is fed where ", declared, " is expected"),
                  n.name, n.location);
    }
    set_shape(number, f.shape);
  }
  /// The event of the copy to a device, if there is one.
  event_ptr set_feed(std::uint32_t number, const feed_ref& f) {
    const value_info& info = c_.values[number];
    value& v = values_[number];
    const std::size_t bytes = f.bytes();
    switch (info.where) {
      case storage::arena_static:
        v.data = address_in_arena(number);
        std::memcpy(c_.device(info).space().on_host()
                        ? v.data
                        : static_cast<char*>(arenas_[info.space].staging.data()) + info.offset,
                    f.data, bytes);
        return nullptr;
      case storage::buffer:
        v.data = address_in_arena(number);
        return c_.device(info).copy_in(v.data, f.data, bytes, f.keep);
      default:
        v.keep = f.keep;
        v.data = const_cast<void*>(f.data);
        return nullptr;
    }
  }

  /// Copies the counter of random operations and the feeds of rank 0 to each device with separate
  /// memory.
  void send_blocks(std::uint64_t draw, std::vector<event_ptr>& events) {
    for (std::size_t s = 0; s < arenas_.size(); ++s) {
      const std::size_t bytes = c_.spaces[s].block_bytes;
      if (!bytes) continue;
      arena& a = arenas_[s];
      device_runtime& d = *c_.spaces[s].device;
      std::memcpy(a.staging.data(), &draw, sizeof draw);
      if (auto e = d.copy_in(a.block.data(), a.staging.data(), bytes, a.staging)) {
        d.wait(e);
        events.push_back(std::move(e));
      }
    }
  }

  /// Takes the arenas at the beginning of a run. Returns true if their addresses have changed.
  bool take_arenas() {
    bool moved = false;
    for (std::size_t s = 0; s < arenas_.size(); ++s) {
      arena& a = arenas_[s];
      const space_info& info = c_.spaces[s];
      if (info.slots && (a.outgrown || a.slot_offset.empty())) lay_out_slots(a, info.bytes);
      const std::size_t bytes = info.slots ? a.slot_offset.back() : info.bytes;
      if (!bytes || a.block) continue;
      try {
        a.block = info.device->arenas().take(bytes);
      } catch (const error& e) {
        throw explained(e, *info.device);
      }
      if (a.block.data() == a.last) continue;
      a.last = a.block.data();
      moved = true;
    }
    return moved;
  }
  /// The error of a device; if it is out of memory, with what uses most of it.
  error explained(const error& e, device_runtime& d) const;
  /// Gives the arenas back at the end of a run.
  void give_arenas() {
    for (std::size_t s = 0; s < arenas_.size(); ++s) {
      arena& a = arenas_[s];
      if (a.block.capacity() > small_arena || a.outgrown) {
        if (a.block) c_.spaces[s].device->arenas().give(std::move(a.block));
        a.block.reset();
      }
      if (a.outgrown)
        for (auto& b : a.overflow) b.reset();
    }
  }

  /// Where the kernel writes output `v`, which is its address from now on.
  void* address_to_write(std::uint32_t v) { return values_[v].data = address_in_arena(v); }

  /// Reserves slots for arena_dynamic values before the kernel is run.
  void fit_slot(std::uint32_t v) {
    const value_info& i = c_.values[v];
    if (i.where != storage::arena_dynamic) return;
    arena& a = arenas_[i.space];
    const std::size_t bytes = bytes_of(c_.type(i).type, shape_of(v));
    std::lock_guard lock(slots_guard_);
    // All values of a slot fit when it is laid out, even those that this run's block has room for.
    std::size_t& wanted = a.slot_bytes[i.offset];
    wanted = std::max(wanted, bytes);
    const std::size_t room = a.overflow[i.offset]
                                 ? a.overflow[i.offset].capacity()
                                 : a.slot_offset[i.offset + 1] - a.slot_offset[i.offset];
    if (bytes <= room) return;
    a.overflow[i.offset] = buffer(c_.device(i).space().allocate(bytes));
    a.outgrown = true;
  }

  /// The first bytes of a device's arena: the counter of random operations.
  const void* block_on(std::uint32_t space) const { return arenas_[space].block.data(); }

 private:
  struct value {
    void* data = nullptr;
    buffer keep;  ///< of what is held
  };
  /// A block up to here stays with its frame: asking for it would cost more than a small step.
  static constexpr std::size_t small_arena = 4096;

  struct arena {
    buffer block;
    const void* last = nullptr;            ///< where the run before had it
    buffer staging;                        ///< on the host, what one copy brings to the device
    std::vector<std::size_t> slot_bytes;   ///< of arena_dynamic values
    std::vector<std::size_t> slot_offset;  ///< of arena_dynamic values
    std::vector<buffer> overflow;          ///< those that have outgrown their slot in this run
    bool outgrown = false;
  };
  /// slot_offset has an element more: the end.
  static void lay_out_slots(arena& a, std::size_t begin) {
    a.slot_offset.clear();
    for (auto bytes : a.slot_bytes) a.slot_offset.push_back(begin), begin += (bytes + 63) / 64 * 64;
    a.slot_offset.push_back(begin);
    a.overflow.resize(a.slot_bytes.size());
    a.outgrown = false;
  }
  void* address_in_arena(std::uint32_t v) {
    const value_info& i = c_.values[v];
    switch (i.where) {
      case storage::arena_static:
        return static_cast<char*>(arenas_[i.space].block.data()) + i.offset;
      case storage::buffer:
        return own_buffer(v).data();
      case storage::arena_dynamic: {
        arena& a = arenas_[i.space];
        const buffer& more = a.overflow[i.offset];
        return more ? more.data() : static_cast<char*>(a.block.data()) + a.slot_offset[i.offset];
      }
      case storage::shared:
        break;
    }
    fail(errc::internal, "a value without memory");
  }
  /// Values given away in an earlier run are not written again.
  buffer& own_buffer(std::uint32_t v) {
    const value_info& i = c_.values[v];
    buffer& b = owned_[i.offset];
    const std::size_t bytes = bytes_of(c_.type(i).type, shape_of(v));
    if (!b.unique() || b.capacity() < bytes) {
      b.reset();
      b = buffer(c_.device(i).space().allocate(bytes));
    }
    return b;
  }

  const executable::compiled& c_;
  std::vector<value> values_;
  std::vector<dims> shapes_;
  std::vector<buffer> owned_;
  std::vector<arena> arenas_;
  std::mutex slots_guard_;
  std::atomic<bool> dirty_{false};
};

}  // namespace deft::ext::exec
