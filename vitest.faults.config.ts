import { defineConfig } from 'vitest/config';

/** Tests that kill processes, fill disks and take minutes: `npm run test:faults`. */
export default defineConfig({
  test: {
    globalSetup: ['test/support/redis-setup.ts'],
    include: ['test/faults/**/*.test.ts'],
    testTimeout: 600_000,
    hookTimeout: 120_000,
    // One at a time: each measures what a crash does to processes of its own.
    maxWorkers: 1,
  },
});
