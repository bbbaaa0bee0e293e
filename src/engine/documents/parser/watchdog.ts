import { Worker } from 'node:worker_threads';
import { MB } from './parser-frames.ts';

/** File descriptor of a pipe that closes when the parent process has ended. */
const LIFELINE_FD = 4;

/** Time between two checks of the process's memory (ms). */
const POLL_MS = 50;

/** Controls the thread that ends this process if its memory exceeds a limit or its parent has ended. */
export interface Watchdog {
  /**
   * Announces that a file of `bytes` bytes will be read next. Until the next call the memory may exceed the limit by
   * twice that size.
   */
  admit(bytes: number): void;
}

/**
 * Starts a thread that ends this process when its memory exceeds a limit (SIGABRT, as V8 does when the heap is full),
 * or when its parent has ended (SIGKILL). The limit includes buffers, which no heap limit covers. The watchdog has a
 * thread of its own, since a parser may not return to the event loop, and runs within this process, since the parent's
 * event loop may be busy with a transaction.
 * @param memoryMb greatest memory of the process, in MB, in addition to twice the size of the file being read
 * @returns when the thread has started to watch
 */
export async function startWatchdog({ memoryMb }: { readonly memoryMb: number }): Promise<Watchdog> {
  const fileMb = new Int32Array(new SharedArrayBuffer(4));
  const settings: WatchdogSettings = { memoryMb, fileMb, lifelineFd: LIFELINE_FD, pollMs: POLL_MS };
  // The code is passed as text, because a module would load Node's type stripper once more for 20 MB.
  const thread = new Worker(`(${watch.toString()})()`, {
    eval: true,
    workerData: settings,
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
  });
  await new Promise<void>((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
  });
  // Nothing may be read without the watchdog.
  thread.once('exit', () => process.exit(1));
  thread.unref();
  return {
    admit: (bytes) => {
      Atomics.store(fileMb, 0, Math.ceil(bytes / MB));
    },
  };
}

interface WatchdogSettings {
  readonly memoryMb: number;
  readonly fileMb: Int32Array;
  readonly lifelineFd: number;
  readonly pollMs: number;
}

/**
 * Watches the process, in a thread of its own. The function runs from its source text in the thread, so it cannot use
 * anything of this module.
 */
function watch(): void {
  const { workerData, parentPort } = process.getBuiltinModule('node:worker_threads');
  const { Socket } = process.getBuiltinModule('node:net');
  const { memoryMb, fileMb, lifelineFd, pollMs } = workerData as WatchdogSettings;
  const lifeline = new Socket({ fd: lifelineFd });
  lifeline.on('error', () => {});
  lifeline.on('close', () => process.kill(process.pid, 'SIGKILL'));
  lifeline.resume();
  setInterval(() => {
    const mostMb = memoryMb + 2 * Atomics.load(fileMb, 0);
    if (process.memoryUsage.rss() > mostMb * 1024 * 1024) process.kill(process.pid, 'SIGABRT');
  }, pollMs);
  parentPort?.postMessage('watching');
}
