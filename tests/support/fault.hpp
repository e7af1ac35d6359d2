// fault.hpp: system calls that fail when a test wants them to, for the calling thread and those it makes later.
#pragma once

#include <criterion/criterion.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace noria::test {

// System call `number` gives `error` from now on, unless its argument `arg` (low half) is `spared`.
inline void fail_syscall(int number, int error, int arg = -1, std::uint32_t spared = 0) {
  constexpr auto kNumber = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  auto offset =
      static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + 8 * static_cast<std::uint32_t>(arg < 0 ? 0 : arg);
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, spared, static_cast<std::uint8_t>(arg < 0 ? 0 : 1), 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{sizeof code / sizeof code[0], code};
  cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

// How many more descriptors the process may open; the old limit comes back at the end.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(unsigned more) {
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before_), 0);
    int lowest = dup(STDIN_FILENO);
    cr_assert_geq(lowest, 0);
    close(lowest);
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(lowest) + more;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &now), 0);
  }
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;

 private:
  rlimit before_;
};

}  // namespace noria::test
