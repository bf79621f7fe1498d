// The two assertions of the emulator's own tests: a value is what it must be, a kernel ends the process.
#pragma once

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(actual, expected) check::expect((actual), (expected), #actual, __FILE__, __LINE__)

namespace check {

template <class Actual, class Expected>
inline void expect(const Actual &actual, const Expected &expected, const char *what, const char *file, int line) {
  if (actual == static_cast<Actual>(expected)) return;
  std::cerr << file << ":" << line << ": " << what << " is " << actual << ", not " << expected << "\n";
  exit(1);
}

// Runs `body` in a process of its own, which must abort with `message` among what it writes on stderr.
inline void dies(const std::string &message, const std::function<void()> &body) {
  int ends[2];
  if (pipe(ends) != 0) exit(1);
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    body();
    _exit(0);
  }
  close(ends[1]);
  std::string written;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) written.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  const bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  if (aborted && written.find(message) != std::string::npos) return;
  std::cerr << "expected an abort with \"" << message << "\", status " << status << ", stderr: " << written << "\n";
  exit(1);
}

}  // namespace check
