import v8 from 'node:v8';
import vm from 'node:vm';

/** Long enough after the start for modules to be loaded and the first tenant to be open. */
const AFTER_MS = 500;

/**
 * Once this thread has started, gives back what loading took: V8 grows its heap for the garbage of some 600 modules and would keep the
 * room, as a service that is idle never fills it again. Costs one collection of some 10 to 40 ms per thread.
 */
export function releaseMemoryAfterStart(): void {
  setTimeout(() => {
    v8.setFlagsFromString('--expose-gc');
    const collect = vm.runInNewContext('gc') as (options: object) => void;
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  }, AFTER_MS).unref();
}
