import { Worker } from 'node:worker_threads';
import { MB } from './parser-frames.ts';

/** The file descriptor whose end says that whoever started this process is gone. */
export const LIFELINE_FD = 4;

const POLL_MS = 50;

export interface Watchdog {
  /** A file of this many bytes is about to be read: it may stand in memory twice beside the rest. */
  admit(bytes: number): void;
}

/**
 * Ends this process when its memory goes beyond a bound, buffers included, which no heap cap counts (SIGABRT, as V8 does when the
 * heap is full), or when its parent is gone (SIGKILL). On a thread of its own, since a parser may not come back to the event loop,
 * and within the process, since the parent's event loop may be busy with a transaction just then.
 * @returns once it watches
 */
export async function startWatchdog({ memoryMb }: { readonly memoryMb: number }): Promise<Watchdog> {
  const fileMb = new Int32Array(new SharedArrayBuffer(4));
  const settings: WatchdogSettings = { memoryMb, fileMb, lifelineFd: LIFELINE_FD, pollMs: POLL_MS };
  // As text, because a module would load Node's type stripper once more for 20 MB.
  const thread = new Worker(`(${watch.toString()})()`, {
    eval: true,
    workerData: settings,
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
  });
  await new Promise<void>((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
  });
  // Unwatched there is no reading.
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

/** Runs from its own text: it sees nothing of this module. */
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
