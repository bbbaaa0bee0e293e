import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    globalSetup: ['test/support/redis-setup.ts'],
    include: ['test/**/*.test.ts'],
    exclude: ['test/faults/**'],
    // Real files, threads and child processes: a bound on hanging, not a measure of speed. On a busy machine a test takes ten times its time.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    maxWorkers: 2,
  },
});
