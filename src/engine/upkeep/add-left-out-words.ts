import { setTimeout as pause } from 'node:timers/promises';
import { WAITING_ENDS } from '../commands/settle-ends.ts';
import { doWaiting } from '../commands/waiting-work.ts';
import type { Clock } from '../ports.ts';
import { commitInSlices } from '../steps/commit-in-slices.ts';
import { listMemoryNosAfter } from '../store/memories.ts';
import { lastMemory } from '../store/memory-counts.ts';
import { findInfos, putInfo } from '../store/store-info.ts';
import { addLeftOutWords as addWords } from '../store/word-index/memory-text.ts';
import { WAITING_CONTEXTS } from '../store/word-index/waiting-contexts.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';
import { BREATH_MS } from './tend-reembed.ts';

/** The connection and the signals that `addLeftOutWords` uses. */
export interface LeftOutWordsContext {
  /** Returns the tenant's file on a connection that may write. It is called anew after each await. */
  readonly open: () => OpenTenant;
  readonly clock: Clock;
  /** Stops the work between two slices when it is aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Called between two slices. */
  readonly onPause?: (() => void) | undefined;
}

/** Greatest number of memories that are checked before the progress is stored again. */
const LOOKED_AT = 200;
/**
 * Name of the entry in `store_info` that stores the progress: the `memoryNo` up to which the word index has all words
 * of every memory, or `DONE`.
 */
const NOTE = 'words_complete';
const DONE = 'done';

/**
 * Adds to the word index of a file the words that earlier versions left out: stems of words in some languages, and
 * paths of files. It works in short commits. Only rows of memories with such words are rewritten. Searches may run
 * meanwhile: a memory whose row has no stems is found by its exact words. The progress is stored in the file, so the
 * work can be stopped at any time and continues from there. Memories that are added meanwhile have all of their words
 * already.
 *
 * First it does what earlier commits have left to later ones (`doWaiting`), if those broke off before.
 * @throws AbortError if `signal` is aborted
 */
export async function addLeftOutWords({ open, clock, signal, onPause }: LeftOutWordsContext): Promise<void> {
  for (;;) {
    const { store } = open();
    const notes = findInfos(store, [NOTE, WAITING_CONTEXTS, WAITING_ENDS]);
    if (notes.has(WAITING_CONTEXTS) || notes.has(WAITING_ENDS)) {
      store.write(() => doWaiting({ store, now: clock.now() }, {}));
      await pause(BREATH_MS, undefined, { signal });
      onPause?.();
      continue;
    }
    const note = notes.get(NOTE);
    if (note === DONE) return;
    const memoryNos = listMemoryNosAfter(store, Number(note ?? 0), LOOKED_AT);
    await commitInSlices(() => open().store, memoryNos, addWords);
    const upTo = memoryNos.at(-1);
    const current = open().store;
    const isDone = upTo === undefined || upTo >= lastMemory(current);
    current.write(() => putInfo(current, NOTE, isDone ? DONE : String(upTo)));
    await pause(BREATH_MS, undefined, { signal });
    onPause?.();
  }
}
