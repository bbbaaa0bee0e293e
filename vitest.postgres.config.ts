import { defineConfig } from 'vitest/config';

/**
 * The tests of the API on PostgreSQL: `npm run test:postgres`, some minutes on two cores. Run them after a change of
 * SQL; `npm test` runs them on files only, and on PostgreSQL what is in test/postgres.
 */
export default defineConfig({
  test: {
    globalSetup: ['test/support/redis-setup.ts', 'test/support/console-setup.ts', 'test/support/postgres-setup.ts'],
    setupFiles: ['test/support/end-of-file.ts'],
    include: ['test/api/**/*.test.ts'],
    // For files only: sealed keys of other servers, and backups.
    exclude: ['test/api/{federation,admin}.test.ts'],
    env: { CAIRN_TEST_STORE: 'postgres' },
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 120_000, interval: 20 } },
    maxWorkers: 3,
    isolate: false,
  },
});
