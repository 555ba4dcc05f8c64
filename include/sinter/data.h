// Batches of data for training loops: shuffled from a key, prepared by another thread. (Reading files: io.h.)
#pragma once
#include <memory>
#include <vector>

#include "sinter/array.h"

namespace sinter::data {

struct BatchOptions {
  bool shuffle = true;
  bool drop_last = false;  // leave out a last batch that is smaller
  int prefetch = 2;        // batches that another thread prepares ahead; 0: none does
};

/// The elements of arrays with equal first axes, in batches: for (const std::vector<Array>& b : Batches({x, y}, 256).epoch(key)). Evaluates
/// the arrays.
class SINTER_API Batches {
 public:
  /// ShapeError when the first axes differ, Error unless the size is positive.
  Batches(std::vector<Array> arrays, std::int64_t size, const BatchOptions& options = {});
  /// The number of batches in an epoch.
  std::int64_t count() const;
  /// The number of elements.
  std::int64_t size() const;

  /// One pass. It may outlive the Batches; one thread at a time may use it.
  class SINTER_API Epoch {
   public:
    struct End {};
    class Iterator {
     public:
      explicit Iterator(Epoch& e) : epoch_(&e) { ++*this; }
      const std::vector<Array>& operator*() const { return batch_; }
      Iterator& operator++() {
        has_batch_ = epoch_->next(batch_);
        return *this;
      }
      bool operator==(End) const { return !has_batch_; }

     private:
      Epoch* epoch_;
      std::vector<Array> batch_;
      bool has_batch_ = false;
    };
    /// Fills the next batch; false after the last.
    bool next(std::vector<Array>& batch);
    Iterator begin() { return Iterator(*this); }
    End end() const { return {}; }

   private:
    friend class Batches;
    struct State;
    explicit Epoch(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
  };
  /// Shuffled by the key (random::key(n)), as random::permutation does; the same batches for the same key.
  Epoch epoch(const Array& key) const;
  /// In order, whatever the options say.
  Epoch in_order() const;

 private:
  struct Source;
  Epoch start(std::vector<std::int64_t> order) const;
  std::shared_ptr<const Source> source_;
};

}  // namespace sinter::data
