import v8 from 'node:v8';
import vm from 'node:vm';

/** Delay of the garbage collection after the call (ms). By then modules are loaded and the first tenant is open. */
const AFTER_MS = 500;

/**
 * Schedules one full garbage collection, half a second after this call, that returns the memory used for loading to the
 * system. Each thread calls it at its start. V8 grows its heap for the garbage of some 600 modules and would keep it,
 * as an idle service never fills it again. The collection takes 10 to 40 ms in each thread.
 */
export function releaseMemoryAfterStart(): void {
  setTimeout(() => {
    v8.setFlagsFromString('--expose-gc');
    const collect = vm.runInNewContext('gc') as (options: object) => void;
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  }, AFTER_MS).unref();
}
