import { setTimeout as pause } from 'node:timers/promises';
import { commitInSlices } from '../steps/commit-in-slices.ts';
import { listMemoryNosAfter } from '../store/memories.ts';
import { lastMemory } from '../store/memory-counts.ts';
import { findInfo, putInfo } from '../store/store-info.ts';
import { addLeftOutWords as addWords } from '../store/word-index/memory-text.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';
import { BREATH_MS } from './tend-reembed.ts';

/** What the change of the word index works with. */
export interface LeftOutWordsContext {
  /** Returns the tenant's file on a connection that may write. It is called anew after each await. */
  readonly open: () => OpenTenant;
  /** Ends the work between two slices when it is aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Called between two slices. */
  readonly onPause?: (() => void) | undefined;
}

/** Memories that are looked at between two notes of how far the change is. */
const LOOKED_AT = 200;
/** The name of the note in the file: the number up to which every memory has all of its words, or `DONE`. */
const NOTE = 'words_complete';
const DONE = 'done';

/**
 * Adds to the word index of a file what earlier versions left out of it, the stems of languages and the paths of files,
 * in short commits. Only rows of memories that have such words are written again. Searches see old and new rows alike:
 * a row without stems is found by its words. The file notes how far the change is, so the work goes on where it ended,
 * whenever it is stopped. Memories that are added meanwhile have all of their words already.
 */
export async function addLeftOutWords({ open, signal, onPause }: LeftOutWordsContext): Promise<void> {
  for (;;) {
    const { store } = open();
    const note = findInfo(store, NOTE);
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
