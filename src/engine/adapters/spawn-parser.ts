import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { EngineError } from '../errors.ts';

/** Memory for buffers, code and Node itself that a parser may take beside its heap (MB). */
const OUTSIDE_HEAP_MB = 256;

/**
 * Returns the bound on the resident memory of a parser (MB) whose heap may have `heapMb`; a watchdog thread in the
 * child enforces it.
 */
export function maxResidentMb(heapMb: number): number {
  return heapMb + OUTSIDE_HEAP_MB;
}

/**
 * Starts a child process that may read the engine's code and the installed packages, and may not read anything else,
 * write, start a process or load native code. Its environment is a time zone only (UTC), so that dates without one mean
 * the same on every machine. It has three pipes: 0 for requests, 3 for replies, and 4, which carries nothing.
 * @param entry  file URL of the module that the child runs
 * @param heapMb bound on the V8 heap of the child (MB)
 * @throws EngineError `unavailable` if no process can be started
 */
export function spawnParser(entry: URL, heapMb: number): ChildProcess {
  const file = fileURLToPath(entry);
  const flags = [
    `--max-old-space-size=${heapMb}`,
    // Node's default of 32 MB takes three times that memory and collects no faster.
    '--max-semi-space-size=16',
    '--permission',
    // The watchdog thread needs it; once that runs, the child drops the permission or closes that way itself.
    '--allow-worker',
    ...[file, ...readablePaths()].map((readable) => `--allow-fs-read=${readable}`),
    '--disallow-code-generation-from-strings',
    '--disable-sigusr1',
    '--no-addons',
  ];
  const child = spawnOrThrow([...flags, file, String(maxResidentMb(heapMb))], path.parse(file).root);
  child.on('error', () => {});
  // Without a free file descriptor Node makes no pipes and reports it only later.
  if ((child.stdio as unknown) === undefined) throw notStarted();
  lowerPriority(child);
  return child;
}

/**
 * Lowers the priority below that of requests and of the worker that stores what was parsed: nobody waits for a parser.
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
 * Lists paths that a child may read: the engine's folder, the package's manifest, and every existing folder in which
 * Node looks for packages from here.
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

/**
 * Returns the time since its start that a child was ready to run and had no processor (ms). On a busy machine it is far
 * longer than the time that the child ran, because of its low priority, and says nothing about the document. Returns 0
 * if the system does not tell: for a child that is gone, and on systems other than Linux.
 */
export function unscheduledMs({ pid }: ChildProcess): number {
  try {
    return Number(fs.readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
  } catch {
    return 0;
  }
}

/** Creates the error for a child that could not be started, or that ended before it was ready. */
export function notStarted(): EngineError {
  return new EngineError('unavailable', 'no process to read documents could be started');
}
