/**
 * Loaded into a service by bench/turns.ts (`NODE_OPTIONS=--import`): writes the CPU time of each turn of the main
 * thread's event loop, ms, to the file that `CAIRN_TURNS` names, at SIGUSR2, which begins a new list.
 */
import fs from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/**
 * CPU time below which a turn counts as idle (ms). The next look then waits, so that the probe does not keep the thread
 * busy.
 */
const IDLE_MS = 0.2;
/** Pause of the probe while the thread idles (ms). The turns of a pause count as one, so none is made smaller. */
const PAUSE_MS = 1;

const file = process.env['CAIRN_TURNS'];
if (isMainThread && file !== undefined) observe(file);

function observe(file: string): void {
  let turns: number[] = [];
  let before = cpuMs();
  const look = () => {
    const now = cpuMs();
    const ms = now - before;
    before = now;
    turns.push(ms);
    if (ms < IDLE_MS) setTimeout(look, PAUSE_MS).unref();
    else setImmediate(look).unref();
  };
  look();
  const write = () => {
    fs.writeFileSync(file, JSON.stringify(turns));
    turns = [];
  };
  process.on('SIGUSR2', write);
}

/** CPU time of the thread so far, ms. The system brings it up to date every half millisecond or so. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
