import { defineConfig } from 'vitest/config';

/**
 * Where moments of kills follow from a seed, another one each time: these have a short form, which takes a few minutes.
 */
const SHORT =
  process.env.CAIRN_FAULTS === 'short'
    ? {
        include: [
          'test/faults/{kill,documents,import,primitives,reembed,queues,standing,federation,consolidation,learned,records,schedules}.test.ts',
        ],
        testNamePattern: /\d kills? /,
      }
    : {};

/**
 * Tests that kill processes, fill disks and take minutes: `npm run test:faults`, or with CAIRN_FAULTS=short a part of
 * them.
 */
export default defineConfig({
  test: {
    globalSetup: ['test/support/redis-setup.ts'],
    setupFiles: ['test/support/end-of-file.ts'],
    include: ['test/faults/**/*.test.ts'],
    testTimeout: 600_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 120_000, interval: 20 } },
    // One at a time: each measures what a crash does to processes of its own.
    maxWorkers: 1,
    ...SHORT,
  },
});
