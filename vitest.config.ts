import path from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    globalSetup: ['test/support/redis-setup.ts'],
    include: ['test/**/*.test.ts'],
    exclude: ['test/faults/**'],
    // Real files, threads and child processes: a bound on hanging, not a measure of speed. On a busy machine a test takes ten times its time.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // The same folder as bin/cairn.cjs: without it each thread that a test starts strips and compiles all its modules anew, 1.5 s of CPU.
    env: { NODE_COMPILE_CACHE: path.resolve('node_modules/.cache/compile') },
    maxWorkers: 2,
  },
});
