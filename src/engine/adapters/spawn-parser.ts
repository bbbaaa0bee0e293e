import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { EngineError } from '../errors.ts';

/** Memory that a parser process may use in addition to its V8 heap, for buffers, code and Node itself (MB). */
const OUTSIDE_HEAP_MB = 256;

/**
 * Returns the greatest resident memory of a parser process (MB) whose V8 heap may have `heapMb`: 256 MB more. A
 * watchdog thread in the process enforces it, and allows twice the size of the file that is read in addition.
 */
export function maxResidentMb(heapMb: number): number {
  return heapMb + OUTSIDE_HEAP_MB;
}

/**
 * Starts a child process for reading documents. It may read only the engine's code and the installed packages, and may
 * not write files, start a process or load native code. Its environment has only the time zone UTC, so that dates
 * without a time zone mean the same on every machine. It has low priority and three pipes: 0 for requests, 3 for
 * replies, and 4, which carries no data and whose end tells that the parent has ended.
 * @param entry file URL of the module that the child runs
 * @param heapMb greatest size of the V8 heap of the child (MB)
 * @throws EngineError `unavailable` if no process can be started
 */
export function spawnParser(entry: URL, heapMb: number): ChildProcess {
  const file = fileURLToPath(entry);
  const flags = [
    `--max-old-space-size=${heapMb}`,
    // Node's default of 32 MB takes three times that memory and collects no faster.
    '--max-semi-space-size=16',
    '--permission',
    // The watchdog thread needs this permission. Once it runs, the child drops the permission, or prevents further
    // threads itself.
    '--allow-worker',
    ...[file, ...readablePaths()].map((readable) => `--allow-fs-read=${readable}`),
    '--disallow-code-generation-from-strings',
    '--disable-sigusr1',
    '--no-addons',
  ];
  const child = spawnOrThrow([...flags, file, String(maxResidentMb(heapMb))], path.parse(file).root);
  child.on('error', () => {});
  // Without a free file descriptor, Node makes no pipes and reports the error only later.
  if ((child.stdio as unknown) === undefined) throw notStarted();
  lowerPriority(child);
  return child;
}

/**
 * Lowers the priority of a child below that of requests and of the worker that stores its results. It does nothing if
 * the system has no priorities.
 */
function lowerPriority({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) os.setPriority(pid, 14);
  } catch {
    // The child has ended, or the system has no priorities.
  }
}

function spawnOrThrow(args: readonly string[], cwd: string): ChildProcess {
  try {
    return spawn(process.execPath, args, {
      cwd,
      env: { TZ: 'UTC' },
      stdio: ['pipe', 'ignore', 'ignore', 'pipe', 'pipe'],
      windowsHide: true,
    });
  } catch {
    throw notStarted();
  }
}

/**
 * Lists the paths that a child may read: the engine's folder, the package's manifest, and every existing folder in
 * which Node looks for packages from here.
 */
function readablePaths(): string[] {
  const engine = path.resolve(import.meta.dirname, '..');
  const paths = [engine, path.resolve(engine, '../../package.json')];
  for (let folder = engine; folder !== path.dirname(folder); folder = path.dirname(folder)) {
    const packages = path.basename(folder) === 'node_modules' ? folder : path.join(folder, 'node_modules');
    if (fs.existsSync(packages)) paths.push(packages, fs.realpathSync(packages));
  }
  return [...new Set(paths)];
}

/** Creates the error for a child that could not be started or ended before it was ready. */
export function notStarted(): EngineError {
  return new EngineError('unavailable', 'no process to read documents could be started');
}
