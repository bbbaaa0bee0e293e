import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { defineConfig } from 'vitest/config';

/**
 * Tests that start whole programs: services, command lines, browsers, other runtimes and servers. They take two thirds
 * of the time, so `npm run check` leaves them to `npm test`.
 */
const WITH_PROGRAMS = [
  'test/{bench,cli,client,clients,console,examples,monitoring,postgres,service}/**/*.test.ts',
  'test/package.test.ts',
];
/** Tests that replace modules, and so need theirs for themselves. */
const WITH_OWN_MODULES = ['test/postgres/same-answers.test.ts'];

process.env.TMPDIR ??= temporaryFolder();
shareCoresAsEquals();

export default defineConfig({
  test: {
    globalSetup: ['test/support/redis-setup.ts', 'test/support/console-setup.ts'],
    setupFiles: ['test/support/end-of-file.ts'],
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
      // Test files share a process: starting one for each file and loading its modules takes a third of their time.
      {
        extends: true,
        test: {
          name: 'near',
          include: ['test/**/*.test.ts'],
          exclude: ['**/node_modules/**', 'test/faults/**', ...WITH_PROGRAMS],
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'programs',
          include: WITH_PROGRAMS,
          exclude: ['**/node_modules/**', ...WITH_OWN_MODULES],
          isolate: false,
        },
      },
      { extends: true, test: { name: 'apart', include: WITH_OWN_MODULES } },
    ],
  },
});

/**
 * Gives the tests, and with them all that they start, the lowest priority. Services lower that of their workers, which
 * beside three test processes would get a fifteenth of a core and take ten times their time; below the lowest is
 * nothing.
 */
function shareCoresAsEquals(): void {
  try {
    os.setPriority(os.constants.priority.PRIORITY_LOW);
  } catch {
    // The system has no priorities.
  }
}

/**
 * Where the files of tests are made: in memory where there is room and programs may be run from, since a commit waits 2
 * to 10 ms for a disk, and a test makes dozens. `TMPDIR` names another folder.
 */
function temporaryFolder(): string {
  const memory = '/dev/shm';
  try {
    const { bavail, bsize } = fs.statfsSync(memory);
    const mount = fs
      .readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .find(([, folder]) => folder === memory);
    if (bavail * bsize > 4 * 1024 ** 3 && mount?.[3]?.split(',').includes('noexec') === false) return memory;
  } catch {
    // No such folder in this system.
  }
  return os.tmpdir();
}
