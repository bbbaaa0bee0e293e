import path from 'node:path';
import { defineConfig } from 'vitest/config';

const IN_ONE_PROCESS = ['test/engine/**/*.test.ts', 'test/quality/**/*.test.ts'];

export default defineConfig({
  test: {
    globalSetup: ['test/support/redis-setup.ts', 'test/support/console-setup.ts'],
    // Real files, threads and child processes: a bound on hanging, not a measure of speed. On a busy machine a test takes
    // ten times its time.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // The default of a second is too short for a service on a busy machine.
    expect: { poll: { timeout: 120_000, interval: 20 } },
    // The same folder as bin/cairn.cjs: without it each thread that a test starts compiles all its modules anew, 1.5 s of
    // CPU.
    env: { NODE_COMPILE_CACHE: path.resolve('node_modules/.cache/compile') },
    // Half of the time of a service test is waiting.
    maxWorkers: 3,
    projects: [
      // Tests of the engine share a process: starting one for each file and loading its modules takes a third of their
      // time.
      { extends: true, test: { name: 'engine', include: IN_ONE_PROCESS, isolate: false } },
      {
        extends: true,
        test: {
          name: 'service',
          include: ['test/**/*.test.ts'],
          exclude: ['**/node_modules/**', 'test/faults/**', ...IN_ONE_PROCESS],
        },
      },
    ],
  },
});
