import { defineConfig } from 'vitest/config';

/**
 * The attacks of test/attacks in their full number, one file after the other: `npm run test:attacks`, about five
 * minutes on two cores. `npm test` runs the same attacks with a fiftieth of the inputs. CAIRN_SEED repeats a run.
 */
export default defineConfig({
  test: {
    setupFiles: ['test/support/end-of-file.ts'],
    include: ['test/attacks/**/*.test.ts'],
    env: { CAIRN_ATTACKS: 'full' },
    testTimeout: 600_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 120_000, interval: 20 } },
    maxWorkers: 1,
  },
});
