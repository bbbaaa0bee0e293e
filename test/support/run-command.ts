import type { WriteContext } from '../../src/engine/commands/write-context.ts';
import type { TestEngine } from './engine-fixture.ts';

/** Runs a command in one commit, as the writer thread does. */
export function runCommand<T>({ store, batch, clock }: TestEngine, run: (context: WriteContext) => T): T {
  const { indexes } = batch.open();
  const context = {
    ...{ store, indexes, config: batch.config, now: clock.now(), newId: batch.newId },
    ...{ backlog: { atMost: 0 }, writtenBy: null },
  };
  return store.write(() => run(context));
}
