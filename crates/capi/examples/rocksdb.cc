// RocksDB deletes tables after each compaction, and their discards can stall the reads of its users.
// This file system of RocksDB's removes the name at once, and frees the space on a thread of its
// own, piece by piece, as the throttle allows.
//
//     c++ -std=c++17 -O2 -shared -fPIC rocksdb.cc -o libpaced.so -lrocksdb -ltrimbench_throttle
//     LD_PRELOAD=./libpaced.so db_bench --fs_uri=paced --db=/srv/db ...
//
// A program of your own includes it, and sets `options.env = rocksdb::NewCompositeEnv(...)`.
// TRIMBENCH_GOAL has the goal, e.g. slowdown=5%. All files lie on the file system of the first one that
// is deleted.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <rocksdb/file_system.h>
#include <rocksdb/utilities/object_registry.h>

#include "trimbench_throttle.h"

namespace {

// Files below this size are not worth a piece of their own.
constexpr off_t kSmall = 1 << 20;

// Files without a name, freed one after the other.
class Freer {
 public:
  explicit Freer(const std::string& directory) {
    throttle_ = trimbench_throttle_open(directory.c_str(), std::getenv("TRIMBENCH_GOAL"));
    if (throttle_ == nullptr) std::fprintf(stderr, "paced: %s\n", trimbench_error());
    thread_ = std::thread([this] { Run(); });
  }

  // What is left is freed first.
  ~Freer() {
    {
      std::lock_guard<std::mutex> held(mutex_);
      closing_ = true;
    }
    changed_.notify_one();
    thread_.join();
    trimbench_throttle_close(throttle_);
  }

  void Free(int file) {
    {
      std::lock_guard<std::mutex> held(mutex_);
      files_.push_back(file);
    }
    changed_.notify_one();
  }

 private:
  void Run() {
    for (;;) {
      std::unique_lock<std::mutex> held(mutex_);
      changed_.wait(held, [this] { return closing_ || !files_.empty(); });
      if (files_.empty()) return;
      int file = files_.front();
      files_.pop_front();
      held.unlock();
      Shrink(file);
      close(file);
    }
  }

  void Shrink(int file) {
    struct stat found;
    if (throttle_ == nullptr || fstat(file, &found) != 0) return;
    uint64_t left = static_cast<uint64_t>(found.st_size);
    while (left > 0) {
      int64_t may = trimbench_throttle_wait(throttle_, left);
      // On an error the rest goes at once, with the descriptor.
      if (may < 1) return;
      left -= static_cast<uint64_t>(may);
      if (ftruncate(file, static_cast<off_t>(left)) != 0) return;
      trimbench_throttle_done(throttle_, static_cast<uint64_t>(may));
    }
  }

  trimbench_throttle* throttle_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int> files_;
  bool closing_ = false;
  std::thread thread_;
};

class PacedFileSystem : public rocksdb::FileSystemWrapper {
 public:
  PacedFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "paced"; }

  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    int file = open(name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct stat found;
    // A checkpoint or a backup may hold a second name: then nothing is freed yet.
    bool paced = file >= 0 && fstat(file, &found) == 0 && found.st_nlink == 1 && found.st_size >= kSmall;
    rocksdb::IOStatus done = FileSystemWrapper::DeleteFile(name, options, debug);
    if (paced && done.ok()) {
      FreerFor(name).Free(file);
    } else if (file >= 0) {
      close(file);
    }
    return done;
  }

 private:
  Freer& FreerFor(const std::string& name) {
    std::call_once(begun_, [&] { freer_ = std::make_unique<Freer>(name.substr(0, name.rfind('/'))); });
    return *freer_;
  }

  std::once_flag begun_;
  std::unique_ptr<Freer> freer_;
};

// `--fs_uri=paced` finds it by this name.
__attribute__((constructor)) void Register() {
  rocksdb::ObjectLibrary::Default()->AddFactory<rocksdb::FileSystem>(
      "paced", [](const std::string&, std::unique_ptr<rocksdb::FileSystem>* guard, std::string*) {
        guard->reset(new PacedFileSystem());
        return guard->get();
      });
}

}  // namespace
